//! The turn: a pure state machine that decides, and never does, what an agent does next.
//!
//! [`Turn::on`] takes what happened and returns what to do. It knows no clock, no randomness and no I/O, so
//! every decision can be tested without a model and replayed from a journal. Each rule is a file under
//! `policy/`; the driver in `driver/` is the only code that performs steps.

mod call;
mod economy;
mod event;
mod machine;
pub(crate) mod policy;
mod record;
mod self_evaluation;
#[cfg(test)]
mod tests;
mod view;

pub use call::{CallState, CallStatus};
pub(crate) use economy::OffloadCandidate;
pub use economy::{ContextEconomy, OffloadedMessage};
pub use event::{CallFacts, CancelReason, PolicySnapshot, Purpose, Recalled, TurnCounter, TurnEvent, TurnStep};
pub use machine::Turn;
pub(crate) use policy::tasks;
pub use policy::{Compaction, Elision, Evaluation, Nudge, Nudges, Trigger};
pub(crate) use record::record;
pub use record::{AcceptedTurn, FORMAT_VERSION, RecordedEvent, UnknownVersion};
