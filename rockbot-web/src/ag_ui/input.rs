//! The input of a run.

use rockbot_core::content::{Content, ContentPart, MediaPart};
use serde::Deserialize;
use serde_json::Value;

use crate::error::WebError;
use crate::parts::{check_said, of_bytes};

/// The input of a run. Members that no answer depends on are not read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunInput {
    pub(super) thread_id: String,
    pub(super) run_id: String,
    messages: Vec<InputMessage>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    context: Option<Vec<Context>>,
    #[serde(default)]
    pub(super) resume: Option<Vec<ResumeEntry>>,
}

#[derive(Deserialize)]
struct InputMessage {
    role: String,
    #[serde(default)]
    content: Value,
}

#[derive(Deserialize)]
struct Context {
    description: String,
    value: String,
}

/// An answer to an interrupt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResumeEntry {
    pub(super) interrupt_id: String,
    pub(super) status: ResumeStatus,
    #[serde(default)]
    pub(super) payload: Value,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum ResumeStatus {
    Resolved,
    Cancelled,
}

impl RunInput {
    /// Refuses tools of the client.
    pub(super) fn check(&self) -> Result<(), WebError> {
        if self.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            return Err(WebError::invalid(
                "`tools` of the client are not called: the agent works with its own tools. Leave `tools` out",
            ));
        }
        Ok(())
    }

    /// Returns the instructions for this turn: system messages, and the context.
    pub(super) fn instructions(&self) -> Option<String> {
        let is_system = |message: &&InputMessage| matches!(&*message.role, "system" | "developer");
        let said = self.messages.iter().filter(is_system);
        let said = said.filter_map(|message| message.content.as_str().map(str::to_owned));
        let context = self.context.iter().flatten();
        let context = context.map(|context| format!("{}: {}", context.description, context.value));
        let all: Vec<_> = said.chain(context).collect();
        Some(all.join("\n\n")).filter(|text| !text.is_empty())
    }

    /// Returns the message that asks: the last one, of the user.
    pub(super) fn last_message(&mut self) -> Result<Content, WebError> {
        let last = self.messages.pop().filter(|message| message.role == "user");
        let last = last.ok_or_else(|| WebError::invalid("the last message must be of the role `user`"))?;
        let content = match last.content {
            Value::String(text) => Content::from(text),
            Value::Array(parts) => parts.iter().map(part).collect::<Result<_, _>>()?,
            _ => Content::from(""),
        };
        check_said(&content)?;
        Ok(content)
    }
}

fn part(part: &Value) -> Result<ContentPart, WebError> {
    let source = &part["source"];
    let value = source["value"].as_str().unwrap_or_default();
    let kind = match part["type"].as_str() {
        Some("text") => return Ok(ContentPart::text(part["text"].as_str().unwrap_or_default())),
        Some("image") => "image",
        Some("document") => "file",
        _ => {
            return Err(WebError::invalid(
                "parts of a message are of the type `text`, `image` or `document`",
            ));
        }
    };
    match (source["type"].as_str(), source["mimeType"].as_str()) {
        (Some("data"), Some(media_type)) => of_bytes(kind, media_type, value, None),
        (Some("url"), media_type) if kind == "image" => Ok(ContentPart::image(MediaPart::url(
            media_type.unwrap_or("image/*"),
            value,
        ))),
        _ => Err(WebError::invalid(
            "the source of an image is `data` with a `mimeType`, or a `url`; of a document `data` with a `mimeType`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input(messages: &Value) -> RunInput {
        serde_json::from_value(json!({"threadId": "t", "runId": "r", "messages": messages})).unwrap()
    }

    #[test]
    fn the_last_message_is_read_in_all_its_parts() {
        let mut input = input(&json!([
            {"id": "1", "role": "system", "content": "Be brief."},
            {"id": "2", "role": "user", "content": [
                {"type": "text", "text": "Who?"},
                {"type": "image", "source": {"type": "data", "value": "Y2F0", "mimeType": "image/png"}},
                {"type": "image", "source": {"type": "url", "value": "https://example.com/cat.png"}},
                {"type": "document", "source": {"type": "data", "value": "Y2F0", "mimeType": "application/pdf"}},
            ]},
        ]));
        assert_eq!(input.instructions().as_deref(), Some("Be brief."));
        let expected = json!([
            {"type": "text", "text": "Who?"},
            {"type": "image", "mediaType": "image/png", "data": "Y2F0"},
            {"type": "image", "mediaType": "image/*", "url": "https://example.com/cat.png"},
            {"type": "file", "mediaType": "application/pdf", "data": "Y2F0"},
        ]);
        assert_eq!(serde_json::to_value(input.last_message().unwrap()).unwrap(), expected);
    }

    #[test]
    fn a_run_needs_a_message_of_the_user() {
        for messages in [
            json!([]),
            json!([{"role": "assistant", "content": "hi"}]),
            json!([{"role": "user"}]),
            json!([{"role": "user", "content": [{"type": "video"}]}]),
            json!([{"role": "user", "content": [{"type": "image", "source": {"type": "data", "value": "!", "mimeType": "image/png"}}]}]),
        ] {
            assert!(input(&messages).last_message().is_err(), "{messages}");
        }
    }
}
