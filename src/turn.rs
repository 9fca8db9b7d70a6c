//! Turns: one message from acceptance to its final reply.
//!
//! A [`TurnRequest`] asks for a turn, [`TurnProgress`] reports on it, a [`TurnOutcome`] ends it.
//! [`Budget`] limits its spending, [`BusyPolicy`] decides what happens when its session is busy,
//! and an [`Approval`] answers a call that waits for a person. The loop itself is a pure state
//! machine whose decisions stand in a [`TurnJournal`], so that a turn survives a crash of its
//! process; [`TurnTrace`] reads them. Policies of the loop, such as [`Nudges`], [`Evaluation`]
//! and [`ContextEconomy`], are settings of the builder; a [`LoopPolicy`] is a policy of your own,
//! and an [`OutputValidator`] checks final answers. A [`HistoryProcessor`] edits the messages
//! that a model is about to read, and an [`InputGuardrail`] checks users' messages.
//!
//! ```
//! use std::time::Duration;
//! use rockbot::turn::{Budget, TurnRequest};
//!
//! let budget = Budget::default().with_max_model_calls(5).with_max_wall_clock(Duration::from_secs(30));
//! let request = TurnRequest::new("a session", "message 1", "What is new?").with_budget(budget);
//! assert_eq!(request.budget.unwrap().max_model_calls, 5);
//! ```
//!
#![doc = include_str!("../docs/background.md")]

#[doc(inline)]
pub use rockbot_core::turn::{
    Announcement, Approval, ApprovalRequest, Budget, BudgetLimit, BusyPolicy, FinalAnswer, HistoryProcessor,
    InputGuardrail, InputVerdict, LiveTurnInfo, LoopDecision, LoopPoint, LoopPolicy, OriginKind, OutputValidator,
    OutputVerdict, OutsideStatement, Recipient, ResultMode, TierSelector, TurnCall, TurnError, TurnFailure,
    TurnJournal, TurnObserver, TurnOutcome, TurnParent, TurnProgress, TurnQuery, TurnRequest, TurnRunner, TurnStatus,
    TurnTask, TurnView, UserInput, ValueOrigin, guardrail_fn, history_fn, policy_fn, validator_fn,
};
#[doc(inline)]
pub use rockbot_host::turn::{
    ContextEconomy, Evaluation, HookLimits, Nudges, TraceEntry, TraceEvent, TraceRequest, TurnTrace,
};
#[doc(inline)]
pub use rockbot_host::{BacklogLimits, Briefing, ContextBudget, HistoryOptions, TurnPolicies};
