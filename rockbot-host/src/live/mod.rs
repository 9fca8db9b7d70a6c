//! Turns that this process works on, and the sessions they run in.
//!
//! A [`LiveTurn`] is the shared state of one turn: the engine and the driver publish on it,
//! callers and other turns wait on it. Its [`TurnState`] moves from `Working` through `Parked` to
//! `Ended` or `Halted`. A session is the unit of ordering: [`Sessions`] admits one turn at a time
//! to each and queues the others, or delivers a message to the turn that is running as a
//! [`SteeringMessage`]. [`LiveTurns`] is the registry of all live turns of a host, and
//! [`Backlog`] bounds their number and length. A parked turn that nothing holds is kept in a compact
//! form.
//!
//! The module depends on neither the engine nor the driver; both depend on it.

mod backlog;
mod mailbox;
mod parked;
mod registry;
mod sessions;
mod state;
mod turn;

pub use backlog::BacklogLimits;
pub(crate) use backlog::BacklogPermit;
pub(crate) use mailbox::{Mailbox, SteeringMessage};
pub(crate) use registry::LiveTurns;
pub(crate) use sessions::{Admission, SessionGuard, Sessions};
pub(crate) use state::TurnState;
pub(crate) use turn::LiveTurn;
