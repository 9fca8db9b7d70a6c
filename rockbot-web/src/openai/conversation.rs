//! The messages of a client as the messages of a turn.

use rockbot_core::chat::{ChatMessage, ToolCall};
use rockbot_core::content::{Content, ContentPart, MediaPart};
use serde::Deserialize;

use crate::error::WebError;
use crate::parts::{check_said, of_bytes};

/// A message of a client, of chat completions or of responses.
#[derive(Deserialize)]
pub(super) struct Message {
    /// Kind of an item of responses; a message has none, or `message`.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) role: Option<String>,
    content: Option<MessageContent>,
    tool_calls: Option<Vec<MessageCall>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MessageContent {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct MessageCall {
    id: String,
    function: CalledFunction,
}

#[derive(Deserialize)]
struct CalledFunction {
    name: String,
    arguments: String,
}

/// A part of a message. The two interfaces name the same kinds differently.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    #[serde(alias = "input_text", alias = "output_text")]
    Text {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    #[serde(alias = "input_image")]
    ImageUrl {
        image_url: Option<ImageUrl>,
    },
    #[serde(alias = "input_file")]
    File {
        file: Option<FileData>,
        filename: Option<String>,
        file_data: Option<String>,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ImageUrl {
    Plain(String),
    Object { url: String },
}

#[derive(Deserialize)]
struct FileData {
    filename: Option<String>,
    file_data: Option<String>,
}

/// A conversation: instructions, the messages before the last one, and the last one.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) instructions: String,
    pub(super) earlier: Vec<ChatMessage>,
    pub(super) last: Content,
}

impl Conversation {
    /// Reads the messages of a client. System messages are instructions for this turn, wherever they
    /// stand.
    pub(super) fn read(instructions: Option<String>, messages: Vec<Message>) -> Result<Self, WebError> {
        let mut instructions: Vec<String> = instructions.into_iter().collect();
        let mut read = Vec::with_capacity(messages.len());
        let mut last = None;
        for message in messages {
            let role = message.role.as_deref().unwrap_or_default();
            if let Some(user) = last.take() {
                read.push(ChatMessage::user(user));
            }
            match role {
                "system" | "developer" => instructions.push(content_of(message.content)?.text().into_owned()),
                "user" => last = Some(content_of(message.content)?),
                "assistant" => read.push(assistant(message)?),
                "tool" => read.push(tool(message)?),
                _ => return Err(WebError::invalid(format!("the role `{role}` of a message is unknown"))),
            }
        }
        let last = last.ok_or_else(|| WebError::invalid("the last message must be of the role `user`"))?;
        check_said(&last)?;
        Ok(Self {
            instructions: instructions.join("\n\n"),
            earlier: read,
            last,
        })
    }
}

fn assistant(message: Message) -> Result<ChatMessage, WebError> {
    let calls = message.tool_calls.unwrap_or_default();
    let calls = calls
        .into_iter()
        .map(|call| ToolCall::new(call.id, call.function.name, call.function.arguments));
    Ok(ChatMessage::assistant(content_of(message.content)?).with_tool_calls(calls.collect()))
}

fn tool(message: Message) -> Result<ChatMessage, WebError> {
    let call = message.tool_call_id;
    let call = call.ok_or_else(|| WebError::invalid("a message of the role `tool` has no `tool_call_id`"))?;
    Ok(ChatMessage::tool(call.into(), content_of(message.content)?))
}

fn content_of(content: Option<MessageContent>) -> Result<Content, WebError> {
    match content {
        None => Ok(Content::from("")),
        Some(MessageContent::Text(text)) => Ok(Content::from(text)),
        Some(MessageContent::Parts(parts)) => parts.into_iter().map(part_of).collect(),
    }
}

fn part_of(part: Part) -> Result<ContentPart, WebError> {
    match part {
        Part::Text { text } | Part::Refusal { refusal: text } => Ok(ContentPart::text(text)),
        Part::ImageUrl { image_url } => {
            let (ImageUrl::Plain(url) | ImageUrl::Object { url }) = image_url
                .ok_or_else(|| WebError::invalid("an image needs an `image_url`: files by id are not kept here"))?;
            media("image", &url, None)
        }
        Part::File {
            file,
            filename,
            file_data,
        } => {
            let (name, data) = match file {
                Some(file) => (file.filename, file.file_data),
                None => (filename, file_data),
            };
            let data =
                data.ok_or_else(|| WebError::invalid("a file needs its `file_data`: files by id are not kept here"))?;
            media("file", &data, name)
        }
    }
}

/// Returns an image or a file of a URL, or of the bytes in a `data:` URL.
fn media(kind: &str, url: &str, name: Option<String>) -> Result<ContentPart, WebError> {
    match url.strip_prefix("data:").map(|data| data.split_once(";base64,")) {
        Some(Some((media_type, data))) => of_bytes(kind, media_type, data, name),
        Some(None) => Err(WebError::invalid("a `data:` URL must be of `;base64,`")),
        None if kind == "image" => Ok(ContentPart::image(MediaPart::url("image/*", url))),
        None => Err(WebError::invalid("a file must be a `data:` URL of `;base64,`")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(messages: Value) -> Result<Conversation, WebError> {
        Conversation::read(None, serde_json::from_value(messages).unwrap())
    }

    #[test]
    fn messages_become_instructions_history_and_the_last_message() {
        let conversation = read(json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "I am Ann."},
            {"role": "assistant", "content": "Hello Ann."},
            {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
            {"role": "user", "content": [
                {"type": "text", "text": "Who is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,Y2F0"}},
                {"type": "input_image", "image_url": "https://example.com/cat.png"},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,Y2F0"}},
            ]},
        ]))
        .unwrap();
        assert_eq!(conversation.instructions, "Be brief.\n\nBe kind.");
        let earlier = [ChatMessage::user("I am Ann."), ChatMessage::assistant("Hello Ann.")];
        assert_eq!(conversation.earlier, earlier);
        let expected = json!([
            {"type": "text", "text": "Who is this?"},
            {"type": "image", "mediaType": "image/png", "data": "Y2F0"},
            {"type": "image", "mediaType": "image/*", "url": "https://example.com/cat.png"},
            {"type": "file", "mediaType": "application/pdf", "name": "a.pdf", "data": "Y2F0"},
        ]);
        assert_eq!(serde_json::to_value(&conversation.last).unwrap(), expected);
    }

    #[test]
    fn what_is_no_conversation_is_refused_with_words() {
        for (messages, words) in [
            (json!([]), "the last message must be"),
            (
                json!([{"role": "assistant", "content": "Hi."}]),
                "the last message must be",
            ),
            (json!([{"role": "user", "content": " "}]), "says nothing"),
            (json!([{"role": "robot", "content": "Hi."}]), "`robot`"),
            (json!([{"role": "tool", "content": "7"}]), "no `tool_call_id`"),
            (
                json!([{"role": "user", "content": [{"type": "image_url"}]}]),
                "needs an `image_url`",
            ),
            (
                json!([{"role": "user", "content": [{"type": "file", "file_data": "https://a.example"}]}]),
                "`data:` URL",
            ),
            (
                json!([{"role": "user", "content": [{"type": "file", "file_data": "data:a/b;base64,!"}]}]),
                "Base64",
            ),
        ] {
            let error = read(messages.clone()).unwrap_err();
            assert!(error.message.contains(words), "{messages}: {}", error.message);
        }
    }
}
