//! Dreams: while users are silent, the agent tends its knowledge, in plans that a person can
//! read, apply and undo.
//!
//! * [`Dreaming`]: the subsystem, with its [`DreamOptions`] and the passes, [`DreamPass`]
//! * [`Dreams`]: the plans, for the program around a host
//! * [`DreamPlan`], [`DreamChange`]: a plan, with its reasons and all that undoing it needs

mod apply;
mod ask;
mod changes;
mod clusters;
mod coverage;
mod dreamer;
mod error;
mod handle;
mod ledger;
mod objections;
mod options;
mod pass;
mod pass_context;
mod passes;
mod plan;
mod plan_store;
mod recall;
mod replay;
mod stores;
mod subsystem;
#[cfg(test)]
mod tests;
mod times;

pub use error::DreamError;
pub use handle::Dreams;
pub use options::DreamOptions;
pub use pass::DreamPass;
pub use plan::{DreamChange, DreamPlan, PlanState};
pub use subsystem::Dreaming;
