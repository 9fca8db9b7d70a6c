//! Tool calls: one guard around every call, whatever entry point it comes from.
//!
//! A call goes through the user's layers (`dispatch.rs`) and then through one fused guard
//! (`guard/`), which looks the tool up, checks grant and arguments, limits concurrency, time and
//! the size of the result, and isolates panics. `tasks.rs` has the tools that exist within a turn
//! alone, `activation.rs` the tool that activates groups of tools; `meters.rs` and `span.rs`
//! observe calls, `outside.rs` is the entry point of other programs' calls.

mod activation;
mod blocking;
mod dispatch;
mod effect_plan;
mod guard;
mod limits;
mod meters;
mod outside;
mod span;
mod tasks;

pub use dispatch::ToolDispatcher;
pub(crate) use effect_plan::plan_tool;
pub(crate) use guard::{ReadMessages, TextIndexes};
pub use limits::ToolLimits;
pub(crate) use outside::GuardedOutsideTools;
