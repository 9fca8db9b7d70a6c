//! What a model answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ChatMessage, MicroUsd, Provenance, Reasoning, Role, ToolCall};

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// It had said everything.
    #[default]
    Stop,
    /// It wants tools to be called.
    ToolCalls,
    /// The answer reached its longest length. Its tool calls are dropped: they may be cut.
    Length,
    /// The provider's content filter cut the answer.
    ContentFilter,
    /// The provider gave another reason, or none.
    Other,
}

impl FinishReason {
    /// The reason in journals and traces, such as `tool_calls`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Other => "other",
        }
    }
}

/// What an answer cost, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Tokens of the request that the provider had cached.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Tokens of the answer that were reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

// serde passes fields by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Input and output together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatResponse {
    /// The text; empty when there are only tool calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tools that the model wants called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What the model thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What it cost in tokens, if the provider says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it cost in money: as the provider says, or else whoever knows its prices; `None` when nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// The model that answered, as the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The provider that answered, as OpenTelemetry names it, such as `openai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// The provider's name for this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
}

impl ChatResponse {
    /// An answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// An answer that calls tools.
    pub fn calls(tool_calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self {
            tool_calls: tool_calls.into_iter().collect(),
            finish: FinishReason::ToolCalls,
            ..Self::default()
        }
    }

    /// The answer as a message of the conversation.
    pub fn to_message(&self) -> ChatMessage {
        ChatMessage {
            tool_calls: self.tool_calls.clone(),
            reasoning: self.reasoning.clone(),
            ..ChatMessage::text_of(Role::Assistant, self.text.clone(), Provenance::MODEL)
        }
    }
}
