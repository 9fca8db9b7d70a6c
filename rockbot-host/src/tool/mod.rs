//! Calling tools: one guard around every call, whoever makes it. And the guides that a model reads about them.

mod dispatch;
mod guides;
mod meters;
mod serve;
mod span;
mod tasks;

pub use dispatch::{ToolDispatcher, ToolLimits};
pub use guides::{GuideError, GuideSnapshot, ToolGuides};
pub(crate) use serve::{TOOL_TOPIC, ToolInvokeHandler, tool_subscription};
