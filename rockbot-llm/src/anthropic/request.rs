//! The request as the Messages API wants it, written straight into bytes.

use std::borrow::Cow;

use rockbot_core::CallId;
use rockbot_core::chat::{
    ChatError, ChatMessage, ChatRequest, ContextReason, ModelSettings, ReasoningEffort, ToolCall, ToolChoice,
};
use rockbot_core::support::json::push_text;
use serde::Serialize;
use serde_json::{Value, json};

use super::conversation::{Block, BlockContent, Conversation, WireMessage};
use super::media::{forms, push_part};
use super::shape::ShapeTool;
use super::tools::{CACHE_MARK, has_calls, push_tools};
use crate::http::{
    NO_RESULT, NoteMarks, ORPHAN, Question, expected_size, invalid_body, push_extra, sendable_name, sendable_object,
};

/// The options of a client that shape its requests.
#[derive(Debug, Clone)]
pub(super) struct RequestOptions {
    /// Maximum number of tokens of an answer, if the request sets none.
    pub(super) max_tokens: u32,
    /// Number of tokens that the model may think for, in addition to the tokens of the answer; `None`
    /// if it does not think.
    pub(super) thinking_budget: Option<u32>,
    /// `true` if the server is asked to cache the beginning of the request.
    pub(super) is_cached: bool,
    /// `true` if the version of the API accepts a temperature.
    pub(super) has_temperature: bool,
}

/// Writes the body that asks `model` for an answer to `request`, streamed or whole, with
/// `settings`. Unset members are left out.
pub(super) fn body(
    question: Question<'_>,
    shape: Option<&ShapeTool>,
    options: &RequestOptions,
) -> Result<Vec<u8>, ChatError> {
    let Question {
        model,
        request,
        settings,
        scope,
        is_streamed,
        ..
    } = question;
    let conversation = Conversation::new(&request.messages, options.is_cached, settings.images.unwrap_or(true));
    let choice = tool_choice(request, settings, shape);
    let mut members = members(settings, choice, options, conversation.may_think());
    (members.model, members.stream) = (model, is_streamed.then_some(true));
    let mut body = Vec::with_capacity(expected_size(request));
    serde_json::to_writer(&mut body, &members).map_err(invalid_body)?;
    push_extra(&mut body, &settings.extra_body)?;
    // The rest goes in front of the closing brace.
    body.pop();
    push_system(&mut body, &conversation.system, options.is_cached);
    body.extend_from_slice(b",\"messages\":[");
    let has_marks = conversation.messages.iter().any(WireMessage::is_mixed);
    let marks = has_marks.then(|| scope.marks());
    for (index, message) in conversation.messages.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        let marks = marks.as_ref().filter(|_| message.is_mixed());
        push_message(&mut body, message, marks, conversation.takes_media);
    }
    body.push(b']');
    push_tools(&mut body, request, shape, options.is_cached).map_err(invalid_body)?;
    body.push(b'}');
    Ok(body)
}

#[derive(Default, Serialize)]
struct Members<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
}

/// Returns the members that follow from `settings`; the API has no seed.
fn members<'a>(
    settings: &'a ModelSettings,
    tool_choice: Option<Value>,
    options: &RequestOptions,
    may_think: bool,
) -> Members<'a> {
    let max_tokens = settings.max_output_tokens.unwrap_or(options.max_tokens).max(1);
    let choice = tool_choice.as_ref().and_then(|choice| choice["type"].as_str());
    // The server refuses thoughts before a call that it must make.
    let may_think = may_think && !matches!(choice, Some("any" | "tool"));
    let budget = thinking_budget(settings, options).filter(|_| may_think);
    // A model that thinks accepts neither of them.
    let is_sampled = options.has_temperature && budget.is_none();
    Members {
        // The server counts thoughts among the answer's tokens.
        max_tokens: max_tokens.saturating_add(budget.unwrap_or(0)),
        // It goes up to 2 with other providers.
        temperature: settings
            .temperature
            .filter(|_| is_sampled)
            .map(|temperature| temperature.clamp(0.0, 1.0)),
        // Newer models refuse both together.
        top_p: settings.top_p.filter(|_| is_sampled && settings.temperature.is_none()),
        stop_sequences: &settings.stop_sequences,
        thinking: budget.map(|budget| json!({ "type": "enabled", "budget_tokens": budget })),
        tool_choice,
        ..Members::default()
    }
}

/// Returns the number of tokens to think for: by the effort of the settings, else the budget of
/// the client.
fn thinking_budget(settings: &ModelSettings, options: &RequestOptions) -> Option<u32> {
    match &settings.reasoning_effort {
        Some(ReasoningEffort::None) => None,
        Some(ReasoningEffort::Minimal) => Some(1024),
        Some(ReasoningEffort::Low) => Some(4096),
        Some(ReasoningEffort::Medium) => Some(8192),
        Some(ReasoningEffort::High) => Some(16_384),
        Some(ReasoningEffort::XHigh | ReasoningEffort::Max) => Some(32_768),
        // A level that another provider knows.
        _ => options.thinking_budget,
    }
}

/// Returns the member `tool_choice`, which the server accepts only beside tools. `Auto` is left
/// out: it is the default.
fn tool_choice(request: &ChatRequest, settings: &ModelSettings, shape: Option<&ShapeTool>) -> Option<Value> {
    let choice = settings.tool_choice.as_ref().unwrap_or(&ToolChoice::Auto);
    if let Some(shape) = shape {
        return Some(match choice {
            ToolChoice::Tool(name) if !shape.is_only => named(name.as_str(), false),
            _ if shape.is_only => named(&shape.name, true),
            _ => json!({ "type": "any" }),
        });
    }
    if request.tools.is_empty() {
        return has_calls(request).then(|| json!({ "type": "none" }));
    }
    let is_alone = settings.parallel_tool_calls == Some(false);
    let mut member = match choice {
        ToolChoice::Auto if !is_alone => return None,
        ToolChoice::Auto => json!({ "type": "auto" }),
        ToolChoice::None => return Some(json!({ "type": "none" })),
        ToolChoice::Required => json!({ "type": "any" }),
        ToolChoice::Tool(name) => named(name.as_str(), false),
    };
    if is_alone {
        member["disable_parallel_tool_use"] = true.into();
    }
    Some(member)
}

fn named(name: &str, is_alone: bool) -> Value {
    let mut choice = json!({ "type": "tool", "name": name });
    if is_alone {
        choice["disable_parallel_tool_use"] = true.into();
    }
    choice
}

/// Appends the member `system`: one text of the host's messages, with a blank line between two.
/// Messages for this request alone are a text of their own behind the mark of the cache, so that
/// they do not invalidate the text before them.
fn push_system(body: &mut Vec<u8>, messages: &[&ChatMessage], is_cached: bool) {
    if messages.is_empty() {
        return;
    }
    let is_lasting = |message: &&ChatMessage| message.why() != ContextReason::RequestInstructions;
    let own = messages.iter().rev().take_while(|message| !is_lasting(message)).count();
    let (lasting, own) = messages.split_at(messages.len() - own);
    body.extend_from_slice(b",\"system\":[");
    push_system_text(body, "", lasting);
    if !lasting.is_empty() {
        body.extend_from_slice(if is_cached { CACHE_MARK } else { b"" });
        body.extend_from_slice(if own.is_empty() { b"}" } else { b"}," });
    }
    push_system_text(body, if lasting.is_empty() { "" } else { "\n\n" }, own);
    body.extend_from_slice(if own.is_empty() { b"]" } else { b"}]" });
}

/// Appends a text of several messages without its closing brace; nothing, if there are none.
fn push_system_text(body: &mut Vec<u8>, begin: &str, messages: &[&ChatMessage]) {
    if messages.is_empty() {
        return;
    }
    body.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    let texts = messages.iter().enumerate().flat_map(|(index, message)| {
        let separator = if index > 0 { "\n\n" } else { begin };
        std::iter::once(separator).chain(texts(message))
    });
    push_text(body, texts);
}

/// Appends a message, with `marks` around each run of the host's texts.
fn push_message(body: &mut Vec<u8>, message: &WireMessage<'_>, marks: Option<&NoteMarks>, takes_media: bool) {
    let head: &[u8] = if message.is_user {
        b"{\"role\":\"user\",\"content\":["
    } else {
        b"{\"role\":\"assistant\",\"content\":["
    };
    body.extend_from_slice(head);
    let is_note = |index: usize| message.blocks.get(index).is_some_and(Block::is_host_note);
    for (index, block) in message.blocks.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        let marks = marks.map(|marks| {
            let begins = index == 0 || !is_note(index - 1);
            [(begins, &*marks.begin), (!is_note(index + 1), &*marks.end)]
                .map(|(is_here, mark)| if is_here { mark } else { "" })
        });
        push_block(body, block, marks.unwrap_or_default(), takes_media);
    }
    body.extend_from_slice(b"]}");
}

/// Appends a block. A block with a text of the host stands between `marks`.
fn push_block(body: &mut Vec<u8>, block: &Block<'_>, marks: [&str; 2], takes_media: bool) {
    match &block.content {
        BlockContent::Thinking(raw) => return body.extend_from_slice(raw.get().as_bytes()),
        BlockContent::Text(message) => push_words(body, &[], message),
        BlockContent::Part(form) => push_part(body, form),
        BlockContent::Orphan(message) => {
            push_words(body, &[ORPHAN], message);
        }
        BlockContent::HostNote(message) => {
            let [begin, end] = marks;
            push_text_block(body, [begin].into_iter().chain(texts(message)).chain([end]));
        }
        BlockContent::Note(text) => push_text_block(body, [*text]),
        BlockContent::Call(call) => push_call(body, call),
        BlockContent::Result(call, message) => push_result(body, call, *message, takes_media),
    }
    if block.is_marked {
        body.extend_from_slice(CACHE_MARK);
    }
    body.push(b'}');
}

fn push_text_block<'a>(body: &mut Vec<u8>, parts: impl IntoIterator<Item = &'a str>) {
    body.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    push_text(body, parts);
}

/// Appends the words of a message behind `intro`. An answer cannot have images, so the images of
/// another model are described in words.
fn push_words(body: &mut Vec<u8>, intro: &[&str], message: &ChatMessage) {
    let described = message.content.has_media().then(|| message.content.words());
    match described {
        Some(words) => push_text_block(body, intro.iter().copied().chain([&*words])),
        None => push_text_block(body, intro.iter().copied().chain(texts(message))),
    }
}

fn push_call(body: &mut Vec<u8>, call: &ToolCall) {
    body.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
    push_text(body, [&*sendable_id(&call.id)]);
    body.extend_from_slice(b",\"name\":");
    push_text(body, [&*sendable_name(&call.name)]);
    body.extend_from_slice(b",\"input\":");
    body.extend_from_slice(sendable_object(&call.arguments).as_bytes());
}

fn push_result(body: &mut Vec<u8>, call: &CallId, message: Option<&ChatMessage>, takes_media: bool) {
    body.extend_from_slice(b"{\"type\":\"tool_result\",\"tool_use_id\":");
    push_text(body, [&*sendable_id(call)]);
    let Some(message) = message else {
        body.extend_from_slice(b",\"is_error\":true,\"content\":");
        return push_text(body, [NO_RESULT]);
    };
    // The API refuses the mark on an empty result.
    if message.is_error && !message.content.is_empty() {
        body.extend_from_slice(b",\"is_error\":true");
    }
    if message.content.has_media() {
        body.extend_from_slice(b",\"content\":[");
        for (index, form) in forms(message, takes_media).enumerate() {
            if index > 0 {
                body.push(b',');
            }
            push_part(body, &form);
            body.push(b'}');
        }
        body.push(b']');
    } else if texts(message).any(|text| !text.is_empty()) {
        body.extend_from_slice(b",\"content\":");
        push_text(body, texts(message));
    }
}

fn texts(message: &ChatMessage) -> impl Iterator<Item = &str> {
    message.content.texts()
}

/// Returns an id that the server accepts. Other providers, whose calls may stand in the history,
/// use more characters.
fn sendable_id(id: &CallId) -> Cow<'_, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match id.as_str() {
        "" => Cow::Borrowed("_"),
        id if id.chars().all(is_allowed) => Cow::Borrowed(id),
        id => Cow::Owned(id.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect()),
    }
}
