//! Turns: what is asked of an agent, what it reports while it works, how it ends, and the journal in between.
//!
//! The engine that runs turns lives in `rockbot-host`.

mod approval;
mod budget;
mod claims;
mod journal;
mod memory_journal;
mod observer;
mod outcome;
mod progress;
mod request;

pub use approval::{Approval, ApprovalRequest};
pub use budget::{Budget, BudgetLimit};
pub use claims::ClaimTable;
pub use journal::{
    Acceptance, Claim, Fence, JournalError, RunAccepted, RunKey, RunRecord, RunState, StoredRun, TurnJournal,
};
pub use memory_journal::InMemoryTurnJournal;
pub use observer::{EndedTurn, TurnObserver};
pub use outcome::{FinishedCall, TurnFailure, TurnOutcome, TurnStatus};
pub use progress::{ProgressSink, TurnProgress};
pub use request::{BusyPolicy, TurnRequest};
