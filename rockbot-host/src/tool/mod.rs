//! Calling tools: one guard around every call, whoever makes it.

mod dispatch;
mod meters;
mod serve;

pub use dispatch::{ToolDispatcher, ToolLimits};
pub(crate) use serve::{ToolInvokeHandler, tool_subscription};
