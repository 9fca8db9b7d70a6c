//! A function-calling suite of public kind: its samples, the calls that an agent and a bare loop
//! make, and the verdict.
//!
//! The samples are read from a folder of the Berkeley Function Calling Leaderboard as PyPI's
//! `bfcl-eval` carries it; none is part of this repository.

pub mod agent;
pub mod bare_loop;
pub mod sample;
pub mod verdict;

use serde_json::{Map, Value};

/// The instructions of the agent and of the bare loop.
pub const INSTRUCTIONS: &str = "You are a helpful assistant. Use your tools when they help. Answer briefly.";

/// The result of every call.
pub const RESULT: &str = r#"{"status":"success"}"#;

/// The most requests to the model for a sample.
pub const MAX_MODEL_CALLS: u32 = 5;

/// The most tokens of an answer.
pub const MAX_TOKENS: u32 = 256;

/// A call that a model made.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The name of the function.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
}

/// The form in which a model is asked for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallForm {
    /// The server parses calls.
    Native,
    /// The server parses nothing: calls are text.
    Text,
}
