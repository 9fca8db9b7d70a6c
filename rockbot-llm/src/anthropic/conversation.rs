//! Arranges the messages of a request as the Messages API wants them.
//!
//! The API refuses requests that other providers accept: roles must alternate, the user's must be
//! the first and, for newer models, the last, the results of tool calls must stand first in the
//! message behind the calls, each call needs a result and each result its call, and no text may
//! be blank. A conversation that was shortened or began with another provider breaks these rules,
//! so they are restored here; otherwise one refused request would make every later request of the
//! conversation fail.

use std::sync::Arc;

use rockbot_core::CallId;
use rockbot_core::chat::{ChatMessage, ContextReason, Role, ToolCall};
use serde_json::value::RawValue;

use super::media::forms;
use super::thinking::sendable_blocks;
use crate::http::{OPENING, PartForm, is_note};

/// The messages of a request, arranged. Everything is borrowed.
pub(super) struct Conversation<'a> {
    /// Texts of the host, in their order.
    pub(super) system: Vec<&'a ChatMessage>,
    /// The other messages: the user's and the model's take turns, the user's first.
    pub(super) messages: Vec<WireMessage<'a>>,
    /// Calls of the last message of the model that have no result yet.
    open_calls: Vec<&'a CallId>,
    /// `true` if the model takes images and files.
    pub(super) takes_media: bool,
}

/// A message of the user or of the model.
pub(super) struct WireMessage<'a> {
    pub(super) is_user: bool,
    pub(super) blocks: Vec<Block<'a>>,
    /// Number of results, which are the first blocks.
    results: usize,
}

/// A block of a message.
pub(super) struct Block<'a> {
    pub(super) content: BlockContent<'a>,
    /// `true` if it was part of the conversation before the present turn, so that the next turn
    /// begins with it, too.
    is_history: bool,
    /// `true` if the server caches the request up to the end of this block.
    pub(super) is_marked: bool,
}

/// The content of a block.
pub(super) enum BlockContent<'a> {
    /// The text of a message.
    Text(&'a ChatMessage),
    /// A text that the host adds in the user's role.
    HostNote(&'a ChatMessage),
    /// A part of a message with images or files.
    Part(PartForm<'a>),
    /// A result whose call is not in the conversation any more, as text.
    Orphan(&'a ChatMessage),
    /// A text of this client, where the API wants a text of the user.
    Note(&'static str),
    /// A thinking block, as the API wrote it.
    Thinking(&'a RawValue),
    /// A tool call.
    Call(&'a ToolCall),
    /// The result of a call; `None` if it was never recorded.
    Result(&'a CallId, Option<&'a ChatMessage>),
}

impl<'a> Conversation<'a> {
    /// Arranges `messages` for a model that takes images and files if `takes_media`. With
    /// `is_cached`, the last block, and the last block before the present turn, are marked.
    pub(super) fn new(messages: &'a [Arc<ChatMessage>], is_cached: bool, takes_media: bool) -> Self {
        let mut conversation = Self {
            system: Vec::new(),
            messages: Vec::with_capacity(messages.len() + 1),
            open_calls: Vec::new(),
            takes_media,
        };
        for message in messages {
            conversation.push(message);
        }
        conversation.settle();
        if conversation.messages.first().is_none_or(|first| !first.is_user) {
            let mut opening = WireMessage::new(true);
            opening.push(BlockContent::Note(OPENING), false);
            conversation.messages.insert(0, opening);
        }
        if conversation.messages.last().is_some_and(|last| !last.is_user) {
            conversation.turn(true).push(BlockContent::Note("Go on."), false);
        }
        if is_cached {
            conversation.mark();
        }
        conversation
    }

    /// Returns `true` if the model may think in its answer. In the middle of a tool loop it may only
    /// if it began to: the server wants the thoughts that led to the calls.
    pub(super) fn may_think(&self) -> bool {
        let [.., calls, results] = self.messages.as_slice() else {
            return true;
        };
        let begins_with_thought =
            matches!(calls.blocks.first(), Some(block) if matches!(block.content, BlockContent::Thinking(_)));
        results.results == 0 || begins_with_thought
    }

    fn push(&mut self, message: &'a ChatMessage) {
        let is_history = message.reason == Some(ContextReason::History);
        let has_text = !message.content.is_blank();
        match message.role {
            Role::System if has_text => self.system.push(message),
            Role::System => {}
            Role::User if message.content.has_media() => self.push_parts(message, is_history),
            Role::User if has_text && is_note(message) => {
                self.turn(true).push(BlockContent::HostNote(message), is_history);
            }
            Role::User if has_text => self.turn(true).push(BlockContent::Text(message), is_history),
            Role::User => {}
            Role::Assistant => self.push_answer(message, has_text, is_history),
            Role::Tool => self.push_result(message, has_text, is_history),
        }
    }

    /// Appends a user's message with images or files, a block for each part.
    fn push_parts(&mut self, message: &'a ChatMessage, is_history: bool) {
        let takes_media = self.takes_media;
        let turn = self.turn(true);
        for form in forms(message, takes_media) {
            turn.push(BlockContent::Part(form), is_history);
        }
    }

    fn push_answer(&mut self, message: &'a ChatMessage, has_text: bool, is_history: bool) {
        let thoughts = message.reasoning.as_ref().map(sendable_blocks).unwrap_or_default();
        // Thoughts alone are no answer; the server refuses a message of nothing else.
        if !has_text && message.tool_calls.is_empty() {
            return;
        }
        let turn = self.turn(false);
        for thought in thoughts {
            turn.push(BlockContent::Thinking(thought), is_history);
        }
        if has_text {
            turn.push(BlockContent::Text(message), is_history);
        }
        for call in &message.tool_calls {
            turn.push(BlockContent::Call(call), is_history);
        }
        self.open_calls.extend(message.tool_calls.iter().map(|call| &call.id));
    }

    fn push_result(&mut self, message: &'a ChatMessage, has_text: bool, is_history: bool) {
        let call = message.tool_call_id.as_ref();
        let open = self.open_calls.iter().position(|open| Some(*open) == call);
        match open {
            Some(at) => {
                let call = self.open_calls.remove(at);
                self.turn(true).push_result(call, Some(message), is_history);
            }
            None if has_text => self.turn(true).push(BlockContent::Orphan(message), is_history),
            None => {}
        }
    }

    /// Returns the message to append to: the last message if it is of the wanted side, else a new
    /// message.
    fn turn(&mut self, is_user: bool) -> &mut WireMessage<'a> {
        let continues = self.messages.last().is_some_and(|last| last.is_user == is_user);
        if !continues {
            // The model speaks again: calls that have no result by now will get none.
            if !is_user {
                self.settle();
            }
            self.messages.push(WireMessage::new(is_user));
        }
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }

    /// Adds a result for each call that has none.
    fn settle(&mut self) {
        for call in std::mem::take(&mut self.open_calls) {
            self.turn(true).push_result(call, None, false);
        }
    }

    fn mark(&mut self) {
        let mut blocks = self.messages.iter_mut().flat_map(|message| &mut message.blocks).rev();
        if let Some(last) = blocks.next() {
            last.mark();
            if last.is_history {
                return;
            }
        }
        if let Some(history) = blocks.find(|block| block.is_history && block.can_be_marked()) {
            history.mark();
        }
    }
}

impl<'a> WireMessage<'a> {
    /// Returns `true` if texts of the host stand beside others.
    pub(super) fn is_mixed(&self) -> bool {
        let notes = self.blocks.iter().filter(|block| block.is_host_note()).count();
        notes > 0 && notes < self.blocks.len()
    }

    fn new(is_user: bool) -> Self {
        Self {
            is_user,
            blocks: Vec::new(),
            results: 0,
        }
    }

    fn push(&mut self, content: BlockContent<'a>, is_history: bool) {
        self.blocks.push(Block::new(content, is_history));
    }

    /// Adds a result behind the results so far, in front of any text.
    fn push_result(&mut self, call: &'a CallId, message: Option<&'a ChatMessage>, is_history: bool) {
        let block = Block::new(BlockContent::Result(call, message), is_history);
        self.blocks.insert(self.results, block);
        self.results += 1;
    }
}

impl<'a> Block<'a> {
    fn new(content: BlockContent<'a>, is_history: bool) -> Self {
        Self {
            content,
            is_history,
            is_marked: false,
        }
    }

    pub(super) fn is_host_note(&self) -> bool {
        matches!(self.content, BlockContent::HostNote(_))
    }

    /// Returns `true` if the server accepts a mark on it.
    fn can_be_marked(&self) -> bool {
        !matches!(self.content, BlockContent::Thinking(_))
    }

    fn mark(&mut self) {
        self.is_marked = self.can_be_marked();
    }
}
