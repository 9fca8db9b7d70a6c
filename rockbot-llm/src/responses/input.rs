//! The items of a request, made of the messages of a conversation.
//!
//! The API refuses a call without its output, an output without its call, and reasoning without
//! the item that followed it. A conversation that was shortened or began with another provider
//! breaks these rules, so they are restored here; otherwise one refused request would make every
//! later request of the conversation fail. Neighbouring answers become one, and neighbouring
//! texts of the user and of the host in the user's role are parts of one message, so that roles
//! alternate for servers with strict templates. The texts of the host stand between marks.

use std::borrow::Cow;
use std::sync::Arc;

use rockbot_core::CallId;
use rockbot_core::chat::{ChatMessage, Role, ToolCall};
use rockbot_core::support::Digest;
use rockbot_core::support::json::push_text;

use super::kept::{KeptItem, kept_items};
use super::media::push_part;
use crate::http::{MarkScope, OPENING, forms, in_rounds, is_mixed, is_note, sendable_arguments, sendable_name};

/// Maximum length of the id of a call, in bytes.
const MAX_ID_LEN: usize = 64;

/// The text between two texts that become one.
const BETWEEN: &str = "\n\n";

/// Appends the member `instructions`, of all messages of the host, and the member `input`, of all
/// others.
pub(super) fn push_conversation(
    body: &mut Vec<u8>,
    messages: &[Arc<ChatMessage>],
    takes_media: bool,
    scope: MarkScope<'_>,
) -> Result<(), serde_json::Error> {
    let mut system = messages
        .iter()
        .filter(|message| message.role == Role::System && has_text(message))
        .peekable();
    if system.peek().is_some() {
        body.extend_from_slice(b",\"instructions\":");
        let texts = system.enumerate().flat_map(|(index, message)| {
            let between = (index > 0).then_some(BETWEEN);
            between.into_iter().chain(texts(message))
        });
        push_text(body, texts);
    }
    body.extend_from_slice(b",\"input\":[");
    let mut items = ItemList {
        body,
        is_empty: true,
        is_in_user: false,
        takes_media,
        scope,
    };
    for group in said(&in_rounds(messages)).chunk_by(|one, next| joins(one, next)) {
        match group {
            [message] if message.role != Role::User => items.push(message)?,
            [first, ..] if first.role == Role::Assistant => items.push_joined(group),
            group => items.push_users(group),
        }
    }
    items.end();
    Ok(())
}

/// The list of items while it is written.
struct ItemList<'a> {
    body: &'a mut Vec<u8>,
    is_empty: bool,
    /// `true` if the last item is a message of the user that may get more parts.
    is_in_user: bool,
    /// `true` if the model takes images and files.
    takes_media: bool,
    /// The origin of the marks around the host's texts.
    scope: MarkScope<'a>,
}

impl ItemList<'_> {
    fn push(&mut self, message: &ChatMessage) -> Result<(), serde_json::Error> {
        match message.role {
            Role::System | Role::User => {}
            Role::Assistant => return self.push_answer(message),
            Role::Tool => self.push_output(message),
        }
        Ok(())
    }

    /// Appends neighbouring messages in the user's role. If messages of the host stand beside other
    /// messages, they get marks.
    fn push_users(&mut self, group: &[Arc<ChatMessage>]) {
        let with_content = group
            .iter()
            .filter(|message| has_text(message) || message.content.has_media());
        let group: Vec<&ChatMessage> = with_content.map(|message| &**message).collect();
        let marks = is_mixed(group.iter().copied()).then(|| self.scope.marks());
        let is_note_at = |index: usize| group.get(index).is_some_and(|message| is_note(message));
        for (index, message) in group.iter().enumerate() {
            if message.content.has_media() {
                self.push_parts(message);
                continue;
            }
            let marks = marks.as_ref().filter(|_| is_note_at(index));
            let begin = marks.filter(|_| index == 0 || !is_note_at(index - 1));
            let end = marks.filter(|_| !is_note_at(index + 1));
            let begin = begin.map(|marks| &*marks.begin);
            let end = end.map(|marks| &*marks.end);
            self.push_user(begin.into_iter().chain(texts(message)).chain(end));
        }
    }

    /// Begins a part of a message of the user: of the last item if it is one.
    fn begin_part(&mut self) {
        if self.is_in_user {
            self.body.push(b',');
        } else {
            self.begin();
            self.body
                .extend_from_slice(b"{\"type\":\"message\",\"role\":\"user\",\"content\":[");
            self.is_in_user = true;
        }
    }

    /// Appends a user's message with images or files.
    fn push_parts(&mut self, message: &ChatMessage) {
        for form in forms(message, self.takes_media) {
            self.begin_part();
            push_part(self.body, &form);
        }
    }

    fn push_user<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        self.begin_part();
        self.body.extend_from_slice(b"{\"type\":\"input_text\",\"text\":");
        push_text(self.body, texts);
        self.body.push(b'}');
    }

    fn push_answer(&mut self, message: &ChatMessage) -> Result<(), serde_json::Error> {
        let has_text = has_text(message) || message.content.has_media();
        if !has_text && message.tool_calls.is_empty() {
            return Ok(());
        }
        if self.is_empty {
            self.push_user([OPENING]);
        }
        let mut calls = message.tool_calls.iter();
        match kept_items(message, has_text) {
            Some(items) => {
                for item in &items {
                    match item {
                        KeptItem::Reasoning { .. } => {
                            self.begin();
                            serde_json::to_writer(&mut *self.body, item)?;
                        }
                        KeptItem::Message { id } => self.push_text(message, id),
                        KeptItem::FunctionCall { id } => {
                            calls.by_ref().take(1).for_each(|call| self.push_call(call, id))
                        }
                    }
                }
            }
            None => {
                if has_text {
                    self.push_text(message, "");
                }
                calls.for_each(|call| self.push_call(call, ""));
            }
        }
        Ok(())
    }

    /// Appends neighbouring answers without reasoning as one, with the calls of the last.
    fn push_joined(&mut self, group: &[Arc<ChatMessage>]) {
        if self.is_empty {
            self.push_user([OPENING]);
        }
        let words = group.iter().map(|message| message.content.words());
        let words: Vec<_> = words.filter(|words| !words.trim().is_empty()).collect();
        self.begin();
        self.body
            .extend_from_slice(b"{\"type\":\"message\",\"role\":\"assistant\",\"content\":");
        push_text(self.body, [&*words.join(BETWEEN)]);
        self.body.push(b'}');
        let calls = group.iter().flat_map(|message| &message.tool_calls);
        calls.for_each(|call| self.push_call(call, ""));
    }

    fn push_text(&mut self, message: &ChatMessage, id: &str) {
        self.begin();
        self.body
            .extend_from_slice(b"{\"type\":\"message\",\"role\":\"assistant\"");
        self.push_id(id);
        if id.is_empty() {
            // Without an id, the API and all who resemble it take the text alone.
            self.body.extend_from_slice(b",\"content\":");
            self.push_words(message);
        } else {
            self.body.extend_from_slice(
                b",\"status\":\"completed\",\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"text\":",
            );
            self.push_words(message);
            self.body.extend_from_slice(b"}]");
        }
        self.body.push(b'}');
    }

    /// Appends the words of an answer. An answer cannot have images, so the images of another model
    /// are described in words.
    fn push_words(&mut self, message: &ChatMessage) {
        if message.content.has_media() {
            push_text(self.body, [&*message.content.words()])
        } else {
            push_text(self.body, texts(message))
        }
    }

    fn push_call(&mut self, call: &ToolCall, id: &str) {
        self.begin();
        self.body.extend_from_slice(b"{\"type\":\"function_call\"");
        self.push_id(id);
        self.body.extend_from_slice(b",\"call_id\":");
        push_text(self.body, [&*sendable_id(&call.id)]);
        self.body.extend_from_slice(b",\"name\":");
        push_text(self.body, [&*sendable_name(&call.name)]);
        self.body.extend_from_slice(b",\"arguments\":");
        push_text(self.body, [&*sendable_arguments(&call.arguments)]);
        self.body.push(b'}');
    }

    fn push_id(&mut self, id: &str) {
        if !id.is_empty() {
            self.body.extend_from_slice(b",\"id\":");
            push_text(self.body, [id]);
        }
    }

    fn push_output(&mut self, message: &ChatMessage) {
        // A result without its call has become a message of the user.
        let Some(call) = &message.tool_call_id else { return };
        if message.content.has_media() {
            self.push_media_result(call, message)
        } else {
            self.push_result(call, texts(message))
        }
    }

    fn push_result<'t>(&mut self, call: &CallId, texts: impl IntoIterator<Item = &'t str>) {
        self.begin();
        self.body
            .extend_from_slice(b"{\"type\":\"function_call_output\",\"call_id\":");
        push_text(self.body, [&*sendable_id(call)]);
        self.body.extend_from_slice(b",\"output\":");
        push_text(self.body, texts);
        self.body.push(b'}');
    }

    /// Appends an output with images or files.
    fn push_media_result(&mut self, call: &CallId, message: &ChatMessage) {
        self.begin();
        self.body
            .extend_from_slice(b"{\"type\":\"function_call_output\",\"call_id\":");
        push_text(self.body, [&*sendable_id(call)]);
        self.body.extend_from_slice(b",\"output\":[");
        for (index, form) in forms(message, self.takes_media).enumerate() {
            if index > 0 {
                self.body.push(b',');
            }
            push_part(self.body, &form);
        }
        self.body.extend_from_slice(b"]}");
    }

    /// Begins an item: ends the message of the user before it, if there is one.
    fn begin(&mut self) {
        if std::mem::take(&mut self.is_in_user) {
            self.body.extend_from_slice(b"]}");
        }
        if !std::mem::replace(&mut self.is_empty, false) {
            self.body.push(b',');
        }
    }

    fn end(mut self) {
        if self.is_empty {
            self.push_user([OPENING]);
        }
        let end: &[u8] = if self.is_in_user { b"]}]" } else { b"]" };
        self.body.extend_from_slice(end);
    }
}

/// Returns the messages that become items. System messages are left out,
/// and so are blank messages, because a blank message would separate two neighbours. Nothing is
/// copied if only the first system messages are left out.
fn said(messages: &[Arc<ChatMessage>]) -> Cow<'_, [Arc<ChatMessage>]> {
    let begin = messages.iter().take_while(|message| message.role == Role::System);
    let messages = messages.get(begin.count()..).unwrap_or_default();
    let is_said = |message: &&Arc<ChatMessage>| match message.role {
        Role::System => false,
        Role::Tool => true,
        Role::User => has_text(message) || message.content.has_media(),
        Role::Assistant => has_text(message) || message.content.has_media() || !message.tool_calls.is_empty(),
    };
    if messages.iter().all(|message| is_said(&message)) {
        Cow::Borrowed(messages)
    } else {
        Cow::Owned(messages.iter().filter(is_said).cloned().collect())
    }
}

/// Returns `true` if both messages are parts of one item: of a message of the user, or of an
/// answer in words.
fn joins(one: &ChatMessage, next: &ChatMessage) -> bool {
    match (one.role, next.role) {
        (Role::User, Role::User) => true,
        (Role::Assistant, Role::Assistant) => {
            // Reasoning belongs to its own item, by whose id the server knows it.
            let is_free = |message: &ChatMessage| message.reasoning.is_none();
            let speaks = |message: &ChatMessage| has_text(message) || message.content.has_media();
            one.tool_calls.is_empty() && speaks(next) && is_free(one) && is_free(next)
        }
        _ => false,
    }
}

fn has_text(message: &ChatMessage) -> bool {
    message.content.texts().any(|text| !text.trim().is_empty())
}

fn texts(message: &ChatMessage) -> impl Iterator<Item = &str> {
    message.content.texts()
}

/// Returns an id that the API accepts: another provider, whose calls may stand in the history,
/// may give longer ones.
fn sendable_id(id: &CallId) -> Cow<'_, str> {
    match id.as_str() {
        "" => Cow::Borrowed("_"),
        id if id.len() <= MAX_ID_LEN => Cow::Borrowed(id),
        id => Cow::Owned(format!("call_{}", Digest::of([id]).short())),
    }
}
