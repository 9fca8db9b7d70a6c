//! Turns: the request that starts one, its progress reports, its outcome, and the journal that
//! makes it durable.
//!
//! The engine that runs turns lives in `rockbot-host`. This module holds the types that
//! interfaces, observers and implementers of journals share: a [`TurnRequest`] starts a turn,
//! [`TurnProgress`] reports arrive while it runs, and a [`TurnOutcome`] ends it. A
//! [`TurnJournal`] records each step before it takes effect, so that a turn survives a crash;
//! [`ClaimTable`] implements the leases and fencing that every journal needs. The conformance
//! suite `testing::conformance::turn_journal` checks a journal.

mod announcement;
mod approval;
mod approver;
mod background;
mod budget;
mod busy;
mod call;
mod claims;
mod delegation;
mod error;
mod events;
mod feed;
mod given_history;
mod hook;
mod inbox;
mod journal;
mod memory_journal;
mod observer;
mod outcome;
mod parent;
mod progress;
mod recipient;
mod request;
mod result_mode;
mod run_body;
mod runner;
mod tier_selector;

pub use announcement::Announcement;
pub use approval::{Approval, ApprovalRequest};
pub use approver::Approver;
pub use background::BackgroundSlot;
pub use budget::{Budget, BudgetLimit};
pub use busy::{Busy, BusyPolicy};
pub use call::TurnCall;
pub use claims::ClaimTable;
pub use delegation::{DelegatedTurn, DelegatedWork, Delegation};
pub use error::TurnError;
pub use events::TurnEvents;
pub use feed::TurnFeed;
pub use given_history::GivenHistoryError;
pub use hook::{
    FinalAnswer, GuardrailFn, HistoryError, HistoryFn, HistoryProcessor, InputGuardrail, InputVerdict, LoopDecision,
    LoopPoint, LoopPolicy, OutputValidator, OutputVerdict, PolicyFn, TurnTask, TurnTaskStatus, TurnView, UserInput,
    ValidatorFn, check_history, guardrail_fn, history_fn, policy_fn, validator_fn,
};
pub use inbox::AnnouncementInbox;
pub use journal::{
    Acceptance, Claim, ClusterJournal, Fence, FreeRun, HolderRequests, JournalError, RunAccepted, RunKey, RunQuery,
    RunRecord, RunState, StoredRun, TurnJournal,
};
pub use memory_journal::InMemoryTurnJournal;
pub use observer::{EndedTurn, TurnObserver};
pub use outcome::{FinishedCall, TurnFailure, TurnOutcome, TurnStatus};
pub use parent::TurnParent;
pub use progress::{ProgressSink, TurnProgress};
pub use recipient::Recipient;
pub use request::TurnRequest;
pub use result_mode::ResultMode;
pub use rockbot_provenance::{OriginKind, OutsideStatement, ValueOrigin};
pub use run_body::RunBody;
pub use runner::{LiveTurnInfo, TurnQuery, TurnRunner};
pub use tier_selector::{TierDecision, TierSelector, TurnSoFar};
