//! The reason why a message is in the context of a model call.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason why a message is in the context of a model call. For diagnosis only: no model and
/// no policy reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextReason {
    /// The system prompt of the agent.
    Instructions,
    /// Additional instructions for models of this kind.
    ModelBehavior,
    /// Instructions of the program that asks, for this message alone.
    RequestInstructions,
    /// Recalled context that may help with the message.
    Recalled,
    /// An earlier part of the conversation.
    History,
    /// The schema that the answer must match.
    Shape,
    /// Instructions on how to work on the message.
    WorkingMethod,
    /// The time.
    DateTime,
    /// The user's message.
    Message,
    /// A message of the user that arrived while the turn ran.
    Joined,
    /// An answer of the model in this turn.
    Answer,
    /// A tool result of this turn.
    ToolResult,
    /// A correction by the host in this turn: a limit was reached, or an answer is incomplete.
    Correction,
    /// A message of a loop policy of the host's program.
    Policy,
    /// The registry of offloaded messages, with the keys that the model reads them by.
    StashRegistry,
    /// Reminders that go with each request, tasks included.
    Reminder,
}

impl fmt::Display for ContextReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instructions => "instructions",
            Self::ModelBehavior => "model behavior",
            Self::RequestInstructions => "instructions of the request",
            Self::Recalled => "recalled",
            Self::History => "history",
            Self::Shape => "shape of the answer",
            Self::WorkingMethod => "working method",
            Self::DateTime => "date and time",
            Self::Message => "user's message",
            Self::Joined => "user's message while the turn ran",
            Self::Answer => "model's answer",
            Self::ToolResult => "tool result",
            Self::Correction => "correction by the host",
            Self::Policy => "loop policy",
            Self::StashRegistry => "stash registry",
            Self::Reminder => "reminder",
        })
    }
}
