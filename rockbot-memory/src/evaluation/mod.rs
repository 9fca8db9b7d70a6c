//! Looking back at sessions that have ended: one question to a model for each, asked while nobody waits.
//!
//! * [`SessionEvaluation`]: the part of a host that does it
//! * [`SessionSummary`]: what comes of it

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
