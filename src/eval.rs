//! Evaluations of agents, and recordings of model servers for tests.
//!
#![doc = include_str!("../docs/evaluation.md")]

#[doc(inline)]
pub use rockbot_eval::{
    Answer, Approving, Case, CaseResult, CaseTurn, Cassette, CassetteError, ComparedCase, Comparison, Dataset,
    DatasetError, Evaluation, EvaluationError, Expect, ExpectedCall, MadeCall, Report, Subject,
};
