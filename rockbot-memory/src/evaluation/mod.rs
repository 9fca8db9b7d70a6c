//! Evaluation of ended sessions: one background question to a model for each.
//!
//! * [`SessionEvaluation`]: the subsystem
//! * [`SessionSummary`]: its result

mod evaluator;
mod options;
mod queue;
mod queue_file;
mod service;
mod summary;
#[cfg(test)]
mod tests;
mod transcript;

pub use options::EvaluationOptions;
pub use service::SessionEvaluation;
pub use summary::{Quality, SessionSummary};
