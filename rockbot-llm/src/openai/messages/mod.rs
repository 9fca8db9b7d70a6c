//! The messages of a request, arranged as chat templates and strict servers want them.
//!
//! The host keeps each text that it adds as a message of its own, with its reason and its trust.
//! Many templates drop or refuse that form: they know one system message, the first, and want the
//! user and the model to take turns. So the messages are joined here, on their way to the server,
//! and nowhere else: the journal and the trace keep them apart.
//!
//! * All system messages become one, in their order.
//! * Neighbours of one role become one message. Only the results of tool calls stay one message
//!   each, directly behind the calls.
//! * A text that the host adds in the user's role stands between two marks in the user's message.
//!   Behind the results of tool calls it stands in the last result, because some servers refuse a
//!   user's message there. For the same reason the model says a word between results and a
//!   message of the user.
//! * For a model that makes one call at a time, an answer with several becomes as many answers,
//!   each with its result.
//! * Images and files stand in users' messages only. The images and files of results and answers
//!   follow in the next user's message.
//!
//! Text that a request has in common with the last request of its turn is copied from there
//! ([`written`]).

mod content;
#[cfg(test)]
mod tests;
mod written;

use std::borrow::Cow;
use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, Reasoning, Role, ToolCall};
use rockbot_core::support::json::push_text;
use serde_json::value::RawValue;

use self::content::{forms, has_media_for, media_of, push_forms};
use self::written::Seam;
pub(super) use self::written::WrittenMessages;
use crate::http::{
    MarkScope, NoteMarks, OPENING, PartForm, RESULTS_READ, ReasoningForm, in_rounds, is_mixed, is_note,
    sendable_arguments, sendable_name, with_single_calls,
};

/// The text between two texts that become one.
const BETWEEN: &str = "\n\n";

/// The host's words in front of images and files of results and answers.
const LEAD: &str = "Images and files of the messages above:";

/// The properties of a request that shape its messages.
#[derive(Clone, Copy)]
pub(super) struct MessageForm<'a> {
    /// The origin of the marks around the host's texts.
    pub(super) scope: MarkScope<'a>,
    /// `true` if the model takes images and files.
    pub(super) takes_media: bool,
    /// `true` if an answer may have several calls; their templates let some models make only one at a
    /// time.
    pub(super) takes_parallel_calls: bool,
}

/// Appends the list of `messages`, arranged. What it has in common with `earlier` is copied.
/// Returns the positions up to which a later list may copy from this one: none if messages had to
/// be moved, which is rare.
pub(super) fn push_messages(
    body: &mut Vec<u8>,
    messages: &[Arc<ChatMessage>],
    form: MessageForm<'_>,
    earlier: Option<WrittenMessages>,
) -> Vec<Seam> {
    let leading = messages.iter().take_while(|message| is_system(message)).count();
    let arranged = arranged(&messages[leading..], form);
    let is_moved = matches!(arranged, Cow::Owned(_));
    let start = body.len();
    let seams = earlier
        .filter(|_| !is_moved)
        .map(|earlier| earlier.push_common(body, messages, form));
    let mut list = MessageList {
        body,
        start,
        last: None,
        form,
        waiting: Vec::new(),
        seams: seams.unwrap_or_default(),
    };
    let done = match list.seams.pop() {
        Some(seam) => list.resume(seam),
        None => {
            list.push_system(messages);
            if arranged.first().is_some_and(|first| first.role == Role::Assistant) {
                list.push_opening();
            }
            leading
        }
    };
    list.push_groups(&arranged[done - leading..], done);
    list.end();
    if is_moved { Vec::new() } else { list.seams }
}

fn is_system(message: &ChatMessage) -> bool {
    message.role == Role::System
}

/// Returns `messages` without those of the system, in rounds. Nothing is copied in the usual order.
fn arranged<'m>(messages: &'m [Arc<ChatMessage>], form: MessageForm<'_>) -> Cow<'m, [Arc<ChatMessage>]> {
    let rounds = if messages.iter().any(|message| is_system(message)) {
        let others: Vec<_> = messages.iter().filter(|message| !is_system(message)).cloned().collect();
        Cow::Owned(in_rounds(&others).into_owned())
    } else {
        in_rounds(messages)
    };
    if form.takes_parallel_calls {
        rounds
    } else {
        with_single_calls(rounds)
    }
}

struct MessageList<'a> {
    body: &'a mut Vec<u8>,
    /// Position of the list in the body.
    start: usize,
    /// Role of the last message.
    last: Option<Role>,
    form: MessageForm<'a>,
    /// Results and answers whose images and files have not followed yet.
    waiting: Vec<&'a ChatMessage>,
    /// The positions up to which a later list may copy from this one.
    seams: Vec<Seam>,
}

impl<'a> MessageList<'a> {
    /// Continues behind the messages in front of `seam`, which were copied, and returns their number.
    fn resume(&mut self, seam: Seam) -> usize {
        self.last = seam.last;
        seam.messages
    }

    /// Appends messages in front of which there are `done` others.
    fn push_groups(&mut self, messages: &'a [Arc<ChatMessage>], mut done: usize) {
        let is_one = |one: &Arc<ChatMessage>, next: &Arc<ChatMessage>| one.role == next.role && one.role != Role::Tool;
        let mut groups = messages.chunk_by(is_one).peekable();
        while let Some(group) = groups.next() {
            let is_result = group[0].role == Role::Tool;
            let notes = groups.next_if(|next| is_result && next.iter().all(|message| is_note(message)));
            self.push_seam(done);
            let notes = notes.unwrap_or_default();
            self.push(group, notes);
            done += group.len() + notes.len();
        }
        self.push_seam(done);
    }

    /// Records the position behind the first `messages`, unless images of theirs have not followed yet.
    fn push_seam(&mut self, messages: usize) {
        if self.waiting.is_empty() {
            self.seams.push(Seam {
                messages,
                offset: self.body.len() - self.start,
                last: self.last,
            });
        }
    }

    fn push_system(&mut self, messages: &[Arc<ChatMessage>]) {
        let with_text = || {
            let of_host = messages.iter().filter(|message| is_system(message));
            of_host.filter(|message| !message.content.is_empty())
        };
        if with_text().next().is_none() {
            return;
        }
        self.begin(Role::System);
        let texts = with_text().enumerate().flat_map(|(index, message)| {
            let between = (index > 0).then_some(BETWEEN);
            between.into_iter().chain(message.content.texts())
        });
        push_text(self.body, texts);
        self.body.push(b'}');
    }

    fn push_opening(&mut self) {
        self.begin(Role::User);
        push_text(self.body, [OPENING]);
        self.body.push(b'}');
    }

    /// Appends neighbours of one role as one message, with the `notes` of the host behind its text.
    fn push(&mut self, group: &'a [Arc<ChatMessage>], notes: &'a [Arc<ChatMessage>]) {
        let role = group[0].role;
        if role == Role::Assistant {
            self.push_waiting();
        }
        let has_calls = group.iter().any(|message| !message.tool_calls.is_empty());
        self.begin(role);
        match group {
            _ if has_calls && group.iter().all(|message| message.content.is_empty()) => {
                self.body.extend_from_slice(b"null");
            }
            [message] if notes.is_empty() && self.waiting.is_empty() && !message.content.has_media() => {
                push_text(self.body, message.content.texts());
            }
            _ => self.push_joined(group, notes),
        }
        if role != Role::User {
            let media = group
                .iter()
                .filter(|message| has_media_for(message, self.form.takes_media));
            self.waiting.extend(media.map(|message| &**message));
        }
        self.push_members(group, has_calls);
        self.body.push(b'}');
    }

    fn push_members(&mut self, group: &[Arc<ChatMessage>], has_calls: bool) {
        if let Some(reasoning) = group.iter().rev().find_map(|message| message.reasoning.as_ref()) {
            push_reasoning(self.body, reasoning);
        }
        if has_calls {
            push_calls(self.body, group.iter().flat_map(|message| &message.tool_calls));
        }
        if let Some(id) = &group[0].tool_call_id {
            self.body.extend_from_slice(b",\"tool_call_id\":");
            push_text(self.body, [id.as_str()]);
        }
    }

    /// Appends the content of `group` and `notes`, the host's between marks. They need none among
    /// themselves.
    fn push_joined(&mut self, group: &[Arc<ChatMessage>], notes: &[Arc<ChatMessage>]) {
        let with_content = group.iter().chain(notes).filter(|message| !message.content.is_empty());
        let all: Vec<&ChatMessage> = with_content.map(|message| &**message).collect();
        let is_mixed = is_mixed(all.iter().copied());
        let marks = (is_mixed || !self.waiting.is_empty()).then(|| self.form.scope.marks());
        let is_user = group[0].role == Role::User;
        let mut pieces: Vec<PartForm<'_>> = Vec::with_capacity(4 * all.len());
        if let Some(marks) = marks.as_ref().filter(|_| is_user && !self.waiting.is_empty()) {
            push_media_of(&mut pieces, &self.waiting, marks);
            self.waiting.clear();
        }
        for run in all.chunk_by(|one, next| is_note(one) == is_note(next)) {
            if !pieces.is_empty() {
                pieces.push(text(BETWEEN));
            }
            let marks = marks.as_ref().filter(|_| is_mixed && is_note(run[0]));
            pieces.extend(marks.map(|marks| text(&marks.begin)));
            for (index, message) in run.iter().enumerate() {
                pieces.extend((index > 0).then_some(text(BETWEEN)));
                pieces.extend(forms(message, self.form.takes_media, is_user));
            }
            pieces.extend(marks.map(|marks| text(&marks.end)));
        }
        push_forms(self.body, &pieces);
    }

    /// Appends a user's message with the images and files that have not followed yet.
    fn push_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let marks = self.form.scope.marks();
        let mut pieces = Vec::new();
        push_media_of(&mut pieces, &waiting, &marks);
        self.begin(Role::User);
        push_forms(self.body, &pieces);
        self.body.push(b'}');
    }

    fn begin(&mut self, role: Role) {
        if role == Role::User && self.last == Some(Role::Tool) {
            self.begin(Role::Assistant);
            push_text(self.body, [RESULTS_READ]);
            self.body.push(b'}');
        }
        self.body.push(if self.last.is_none() { b'[' } else { b',' });
        self.last = Some(role);
        self.body.extend_from_slice(b"{\"role\":");
        push_text(self.body, [name(role)]);
        self.body.extend_from_slice(b",\"content\":");
    }

    fn end(&mut self) {
        self.push_waiting();
        if self.last.is_none() {
            self.body.push(b'[');
        }
        self.body.push(b']');
    }
}

/// Appends the images and files of results and answers, behind a text of the host that says what
/// they are.
fn push_media_of<'a>(pieces: &mut Vec<PartForm<'a>>, waiting: &[&'a ChatMessage], marks: &'a NoteMarks) {
    pieces.extend([text(&marks.begin), text(LEAD), text(&marks.end)]);
    pieces.extend(waiting.iter().flat_map(|message| media_of(message)));
}

fn text(text: &str) -> PartForm<'_> {
    PartForm::Text(Cow::Borrowed(text))
}

fn name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// Appends the reasoning: the provider's own form if there is one, else the plain text. What a
/// model of another tier has written may have the form of another dialect.
fn push_reasoning(body: &mut Vec<u8>, reasoning: &Reasoning) {
    if let Some(details) = own_details(reasoning) {
        body.extend_from_slice(b",\"reasoning_details\":");
        body.extend_from_slice(details.get().as_bytes());
    } else if !reasoning.text.is_empty() {
        body.extend_from_slice(b",\"reasoning_content\":");
        push_text(body, [reasoning.text.as_str()]);
    }
}

fn own_details(reasoning: &Reasoning) -> Option<&RawValue> {
    let details = reasoning.details.as_deref()?;
    (ReasoningForm::of(details) == ReasoningForm::Chat).then_some(details)
}

fn push_calls<'a>(body: &mut Vec<u8>, calls: impl Iterator<Item = &'a ToolCall>) {
    body.extend_from_slice(b",\"tool_calls\":[");
    for (index, call) in calls.enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(b"{\"id\":");
        push_text(body, [call.id.as_str()]);
        body.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        push_text(body, [&*sendable_name(&call.name)]);
        body.extend_from_slice(b",\"arguments\":");
        push_text(body, [&*sendable_arguments(&call.arguments)]);
        body.extend_from_slice(b"}}");
    }
    body.push(b']');
}
