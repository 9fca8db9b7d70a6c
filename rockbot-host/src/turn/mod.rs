//! The turn: a pure state machine that decides, and never performs, the next step of an agent.
//!
//! `Turn::on` takes an event and returns the steps to perform. It uses no clock, no randomness
//! and no I/O, so every decision can be tested without a model, and a journal can be replayed to
//! the same state. The driver (`driver/`) performs the steps and reports their results as further
//! events.
//!
//! The modules depend on each other in one direction only:
//!
//! - the vocabulary: `event` (`TurnEvent`), `step` (`TurnStep`, `Purpose`), `call` (`CallState`),
//!   `compaction` (`Compaction`), `history` (`HistoryEdit`) and `settings` (`PolicySnapshot`).
//!   Plain data without rules; its serialized form is the form of the journal;
//! - `policy/`: the rules of the loop, one file each, pure functions over the vocabulary. The
//!   table in `policy/mod.rs` lists them with the event that each listens to, the step that it
//!   decides, and its setting;
//! - `machine/`: `Turn`, the state of one turn, which applies events and asks the policies;
//! - `record`: the form of events and steps in a journal, and the replay of a journal;
//! - `trace`: a journal, read for people and tests ([`TurnTrace`]). Only the trace and the
//!   settings are public.

mod call;
mod compaction;
mod event;
mod history;
mod machine;
pub(crate) mod policy;
mod record;
mod settings;
mod step;
#[cfg(test)]
mod tests;
mod trace;

pub(crate) use call::{CallFacts, CallState, CallStatus};
pub(crate) use compaction::{Compaction, Elision, OffloadedMessage};
pub use event::Recalled;
pub(crate) use event::{CancelReason, Revision, TurnEvent, Validation};
pub(crate) use history::{HistoryEdit, edits};
pub(crate) use machine::{OffloadCandidate, Turn, from_sender};
pub(crate) use policy::tasks;
pub use record::UnknownVersion;
pub(crate) use record::{AcceptedTurn, FORMAT_VERSION, record};
pub(crate) use settings::PolicySnapshot;
pub use settings::{ContextEconomy, Evaluation, HookLimits, Nudges};
pub(crate) use step::{Consultation, Nudge, Purpose, Trigger, TurnStep};
pub use trace::{TraceEntry, TraceEvent, TraceRequest, TurnTrace};
