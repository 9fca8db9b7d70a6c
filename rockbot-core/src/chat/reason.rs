//! Why a message stands in what a model is shown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a message stands in what a model is shown. For people: no model and no rule reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextReason {
    /// What the agent is told to be.
    Instructions,
    /// What models of this kind are told besides.
    ModelBehavior,
    /// What the agent knows that may help with the message.
    Recalled,
    /// An earlier part of the conversation.
    History,
    /// The shape that the answer must have.
    Shape,
    /// How to work on the message.
    WorkingMethod,
    /// The time.
    DateTime,
    /// What the user said.
    Message,
    /// What the user said while the turn ran.
    Joined,
    /// What the model said in this turn.
    Answer,
    /// What a tool answered in this turn.
    ToolResult,
    /// What the host said to the model in this turn: a limit is reached, an answer is not complete.
    Correction,
    /// What was left out of the conversation, and where the model finds it.
    StashRegistry,
    /// What the model is reminded of with each request, its tasks included.
    Reminder,
}

impl fmt::Display for ContextReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instructions => "instructions",
            Self::ModelBehavior => "model behavior",
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
            Self::StashRegistry => "stash registry",
            Self::Reminder => "reminder",
        })
    }
}
