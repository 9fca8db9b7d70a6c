//! Calling tools: one guard around every call, whoever makes it.

mod dispatch;
mod isolate;
mod meters;

pub use dispatch::{ToolDispatcher, ToolLimits};
