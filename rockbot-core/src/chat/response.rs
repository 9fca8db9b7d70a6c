//! Answers of a model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ChatMessage, Content, ContentPart, MicroUsd, ModelTier, Reasoning, ToolCall, Usage};

/// The reason why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The answer is complete.
    #[default]
    Stop,
    /// The model requested tool calls.
    ToolCalls,
    /// The answer reached its longest length. Its tool calls are dropped: they may be cut.
    Length,
    /// The provider's content filter cut the answer.
    ContentFilter,
    /// The provider gave another reason, or none. Its tool calls are dropped.
    Other,
}

impl FinishReason {
    /// Returns the name in journals and traces, such as `tool_calls`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Other => "other",
        }
    }

    /// Returns `true` if a limit or a filter cut the answer.
    pub fn is_cut(self) -> bool {
        matches!(self, Self::Length | Self::ContentFilter)
    }

    /// Returns `true` if the tool calls of the answer are complete, and may run. The calls of an
    /// answer that was cut, or that ended for an unknown reason, may be cut themselves, even where
    /// their arguments are valid JSON.
    pub fn allows_calls(self) -> bool {
        matches!(self, Self::Stop | Self::ToolCalls)
    }
}

/// A complete answer of a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChatResponse {
    /// The text; empty when there are only tool calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Images and files that the model made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<ContentPart>,
    /// The tool calls that the model requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// `true` if the model wrote these calls into its text, and they were read from there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub calls_from_text: bool,
    /// The reasoning of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// The reason why the model stopped.
    pub finish: FinishReason,
    /// Token counts, if the provider reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost as the provider reported it, else by a configured price; `None` when neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// The model that answered, as the provider names it, else as its client does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The tier that a chat layer asked instead of the tier of the question. The host sets it;
    /// `None`, the default, if no layer changed the tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<ModelTier>,
    /// The provider that answered, as OpenTelemetry names it, such as `openai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// The provider's name for this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
}

impl ChatResponse {
    /// Creates an answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Creates an answer that calls tools.
    pub fn calls(tool_calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self {
            tool_calls: tool_calls.into_iter().collect(),
            finish: FinishReason::ToolCalls,
            ..Self::default()
        }
    }

    /// Sets the text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// Sets the images and files that the model made.
    #[must_use]
    pub fn with_media(mut self, media: Vec<ContentPart>) -> Self {
        self.media = media;
        self
    }

    /// Sets the tool calls. Unlike [`ChatResponse::calls`], it leaves the reason why the model stopped.
    #[must_use]
    pub fn with_tool_calls(mut self, tool_calls: Vec<ToolCall>) -> Self {
        self.tool_calls = tool_calls;
        self
    }

    /// Sets whether the model wrote the tool calls into its text.
    #[must_use]
    pub fn with_calls_from_text(mut self, are_from_text: bool) -> Self {
        self.calls_from_text = are_from_text;
        self
    }

    /// Sets the reasoning of the model.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: impl Into<Option<Reasoning>>) -> Self {
        self.reasoning = reasoning.into();
        self
    }

    /// Sets the reason why the model stopped. Default [`FinishReason::Stop`].
    #[must_use]
    pub fn with_finish(mut self, finish: FinishReason) -> Self {
        self.finish = finish;
        self
    }

    /// Sets the token counts.
    #[must_use]
    pub fn with_usage(mut self, usage: impl Into<Option<Usage>>) -> Self {
        self.usage = usage.into();
        self
    }

    /// Sets the cost.
    #[must_use]
    pub fn with_cost(mut self, cost: impl Into<Option<MicroUsd>>) -> Self {
        self.cost = cost.into();
        self
    }

    /// Sets the model that answered, as the provider names it.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the tier that was asked. Default `None`: the tier of the question.
    #[must_use]
    pub fn with_tier(mut self, tier: impl Into<Option<ModelTier>>) -> Self {
        self.tier = tier.into();
        self
    }

    /// Sets the provider that answered, as OpenTelemetry names it.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<Arc<str>>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// Sets the provider's name for this answer.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Returns the text, followed by the images and files.
    pub fn content(&self) -> Content {
        let mut content = Content::from(&self.text);
        content.extend(self.media.iter().cloned());
        content
    }

    /// Converts the answer into a message of the conversation.
    pub fn to_message(&self) -> ChatMessage {
        ChatMessage {
            tool_calls: self.tool_calls.clone(),
            reasoning: self.reasoning.clone(),
            ..ChatMessage::assistant(self.content())
        }
    }
}
