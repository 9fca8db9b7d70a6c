//! Signs of how well the agent did, found in what people say and in what tools do.
//!
//! [`FeedbackSignals`] looks at every turn that has ended, and writes feedback:
//!
//! * [`FeedbackSignal::Correction`](rockbot_core::store::FeedbackSignal::Correction), when the message of a person
//!   [corrects](correction()) the answer before it
//! * [`FeedbackSignal::ToolFailure`](rockbot_core::store::FeedbackSignal::ToolFailure), for each tool whose calls failed
//!
//! What people like and dislike is written by a host that serves users
//! ([`UserFeedback`](rockbot_core::user::UserFeedback)).

mod correction;
mod entries;
mod phrases;
mod subsystem;
#[cfg(test)]
mod tests;

pub use correction::{Correction, correction};
pub use subsystem::FeedbackSignals;
