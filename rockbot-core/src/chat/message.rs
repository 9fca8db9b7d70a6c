//! Messages of a conversation with a model.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ContextReason;
use crate::content::{Content, Provenance};
use crate::trust::{Label, Trust};
use crate::{CallId, ToolName};

/// The role of a message's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The host.
    System,
    /// The user, or another program that asks.
    User,
    /// The model.
    Assistant,
    /// A tool, answering a call of the model.
    Tool,
}

/// A message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChatMessage {
    /// The role of a message's author.
    pub role: Role,
    /// The text, images and files, in parts with their provenance.
    #[serde(default, skip_serializing_if = "Content::is_empty")]
    pub content: Content,
    /// The tool calls of an assistant's message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<CallId>,
    /// `true` if the call that a tool's message answers failed, or an assistant's message is the
    /// host's report of a turn that failed. Its text says so in words, too; Anthropic's models also
    /// get the mark of a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The reasoning of an assistant's message; some models want it back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// The reason why the message is in the context, where the role alone does not imply it; see
    /// [`ChatMessage::why`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ContextReason>,
}

/// A tool call as the model requested it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The model's name for this call.
    pub id: CallId,
    /// The tool.
    pub name: ToolName,
    /// The arguments: JSON text, as the model wrote it. It may be malformed.
    pub arguments: Arc<str>,
}

/// The reasoning of a model before its answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reasoning {
    /// The thoughts as text; empty when the provider hides them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The provider's own form, to be sent back unchanged (OpenRouter's `reasoning_details`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Arc<RawValue>>,
}

impl ToolCall {
    /// Creates a call with the JSON text of its arguments.
    pub fn new(id: impl Into<CallId>, name: impl Into<ToolName>, arguments: impl Into<Arc<str>>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }
}

impl Reasoning {
    /// Creates a reasoning from its text, without the provider's own form.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            details: None,
        }
    }

    /// Sets the provider's own form.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<Option<Arc<RawValue>>>) -> Self {
        self.details = details.into();
        self
    }
}

impl PartialEq for Reasoning {
    fn eq(&self, other: &Self) -> bool {
        let raw = |this: &Self| this.details.as_ref().map(|details| details.get().to_owned());
        self.text == other.text && raw(self) == raw(other)
    }
}

impl ChatMessage {
    /// Creates a message of `role`. Parts of `content` without an origin get `provenance`, which also
    /// limits the trust of the others.
    pub fn new(role: Role, content: impl Into<Content>, provenance: Provenance) -> Self {
        Self {
            role,
            content: content.into().attributed(provenance),
            tool_calls: Vec::new(),
            tool_call_id: None,
            is_error: false,
            reasoning: None,
            reason: None,
        }
    }

    /// Creates a message of the host.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text.into(), Provenance::HOST)
    }

    /// Creates a message of the user.
    ///
    /// ```
    /// use rockbot_core::chat::ChatMessage;
    /// use rockbot_core::content::{Content, MediaPart};
    ///
    /// let question = Content::from("Who is this?").with_image(MediaPart::bytes("image/png", vec![0; 900]));
    /// assert_eq!(ChatMessage::user(question).content.media().count(), 1);
    /// ```
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content, Provenance::USER)
    }

    /// Creates a message of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content, Provenance::MODEL)
    }

    /// Creates a message of the model that calls tools.
    pub fn calls(text: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self {
            tool_calls,
            ..Self::assistant(text.into())
        }
    }

    /// Creates the result message of the tool call `call`. Parts without an origin are the tool's,
    /// and untrusted; the others have the trust that they state.
    pub fn tool(call: CallId, content: impl Into<Content>) -> Self {
        let mut content = content.into();
        let parts = content.parts_mut().iter_mut();
        let unknown = parts.filter(|part| part.provenance().is_unknown());
        unknown.for_each(|part| *part.provenance_mut() = Provenance::TOOL);
        Self {
            tool_call_id: Some(call),
            ..Self::new(Role::Tool, content, Provenance::HOST)
        }
    }

    /// Sets the tool calls of a model's message.
    #[must_use]
    pub fn with_tool_calls(mut self, tool_calls: Vec<ToolCall>) -> Self {
        self.tool_calls = tool_calls;
        self
    }

    /// Sets whether the call that this message answers failed. Default `false`.
    #[must_use]
    pub fn with_error(mut self, is_error: bool) -> Self {
        self.is_error = is_error;
        self
    }

    /// Sets the reasoning of the model.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: impl Into<Option<Reasoning>>) -> Self {
        self.reasoning = reasoning.into();
        self
    }

    /// Returns the least trust of all parts. A message without content is fully trusted.
    pub fn trust(&self) -> Trust {
        self.content.trust()
    }

    /// Returns the label of all parts together.
    pub fn label(&self) -> Label {
        self.content.label()
    }

    /// Returns the concatenated text of all parts; borrowed unless there are several.
    pub fn text(&self) -> Cow<'_, str> {
        self.content.text()
    }
}

impl ChatMessage {
    /// Sets the reason why the message is in the context.
    #[must_use]
    pub fn because(mut self, reason: ContextReason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Returns the reason why the message is in the context: the reason that was set, or else the
    /// reason that its role and its source imply.
    pub fn why(&self) -> ContextReason {
        self.reason.unwrap_or_else(|| match self.role {
            Role::System => ContextReason::Instructions,
            Role::Assistant => ContextReason::Answer,
            Role::Tool => ContextReason::ToolResult,
            Role::User if self.is_of(&Provenance::USER) => ContextReason::Message,
            Role::User => ContextReason::Correction,
        })
    }

    fn is_of(&self, provenance: &Provenance) -> bool {
        self.content.parts().iter().all(|part| part.provenance() == provenance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_reason_follows_from_role_and_source() {
        let host = ChatMessage::new(Role::User, "stop", Provenance::HOST);
        let check = |message: ChatMessage, expected| assert_eq!(message.why(), expected);
        check(ChatMessage::system("be kind"), ContextReason::Instructions);
        check(ChatMessage::user("hi"), ContextReason::Message);
        check(ChatMessage::assistant("hi"), ContextReason::Answer);
        check(ChatMessage::tool("1".into(), "ok"), ContextReason::ToolResult);
        check(host.clone(), ContextReason::Correction);
        check(host.because(ContextReason::DateTime), ContextReason::DateTime);
    }

    #[test]
    fn only_a_result_of_a_failed_call_is_written_as_one() {
        let written = |message: &ChatMessage| serde_json::to_value(message).unwrap();
        let result = ChatMessage::tool("c1".into(), "no");
        assert_eq!(written(&result).get("is_error"), None);
        let failed = result.with_error(true);
        assert_eq!(written(&failed)["is_error"], true);
        assert_eq!(serde_json::from_value::<ChatMessage>(written(&failed)).unwrap(), failed);
    }

    #[test]
    fn a_message_without_a_reason_is_written_as_before() {
        let written = |message: &ChatMessage| serde_json::to_value(message).unwrap();
        let plain = ChatMessage::user("hi");
        assert_eq!(written(&plain).get("reason"), None);
        let past = plain.because(ContextReason::History);
        assert_eq!(written(&past)["reason"], "history");
        assert_eq!(serde_json::from_value::<ChatMessage>(written(&past)).unwrap(), past);
    }
}
