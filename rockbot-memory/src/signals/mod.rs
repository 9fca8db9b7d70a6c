//! Signals of an agent's quality, from users' messages and from tool calls.
//!
//! [`FeedbackSignals`] observes every ended turn, and records feedback:
//!
//! * [`FeedbackSignal::Correction`](rockbot_core::store::FeedbackSignal::Correction), when a
//!   user's message [corrects](correction()) the answer before it
//! * [`FeedbackSignal::ToolFailure`](rockbot_core::store::FeedbackSignal::ToolFailure), for each
//!   tool whose calls failed
//!
//! Explicit ratings are recorded by a host that serves users
//! ([`UserFeedback`](rockbot_core::user::UserFeedback)).

mod correction;
mod entries;
mod phrases;
mod subsystem;
#[cfg(test)]
mod tests;

pub use correction::{Correction, correction};
pub use subsystem::FeedbackSignals;
