//! Hooks: async functions of the host's own program that a turn asks at fixed points.
//!
//! | hook | asked about | may |
//! |---|---|---|
//! | [`InputGuardrail`] | a user's message | refuse it, or replace it |
//! | [`LoopPolicy`] | each step of the loop | add a message, ask the model again, end the turn |
//! | [`OutputValidator`] | the final answer | send it back to the model with a complaint |
//! | [`HistoryProcessor`] | the messages of a request | drop, shorten, add and reorder them |
//!
//! They see a turn through a [`TurnView`], return an error instead of a decision when they cannot
//! decide, and have a time limit. The journal keeps their decisions, so a turn that continues
//! after a crash does not ask for the same decision again.

mod history_processor;
mod input_guardrail;
mod loop_policy;
mod output_validator;
mod view;

pub use history_processor::{HistoryError, HistoryFn, HistoryProcessor, check_history, history_fn};
pub use input_guardrail::{GuardrailFn, InputGuardrail, InputVerdict, UserInput, guardrail_fn};
pub use loop_policy::{LoopDecision, LoopPoint, LoopPolicy, PolicyFn, policy_fn};
pub use output_validator::{FinalAnswer, OutputValidator, OutputVerdict, ValidatorFn, validator_fn};
pub use view::{TurnTask, TurnTaskStatus, TurnView};
