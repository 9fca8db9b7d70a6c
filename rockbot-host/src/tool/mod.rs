//! Calling tools: one guard around every call, whoever makes it.

mod dispatch;
mod meters;
mod serve;
mod span;
mod tasks;

pub use dispatch::{ToolDispatcher, ToolLimits};
pub(crate) use serve::{TOOL_TOPIC, ToolInvokeHandler, tool_subscription};
