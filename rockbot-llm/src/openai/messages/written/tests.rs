//! Requests of a turn, each with and without what was written of the one before it: the same bytes.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use rockbot_core::chat::{ChatMessage, ChatRequest, Provenance, RequestCache, Role, ToolCall};
use rockbot_core::content::{Content, MediaPart};

use super::{MAX_KEPT, WrittenMessages};
use crate::http::{MarkScope, Question};
use crate::openai::request::body;

/// A change of the conversation between two requests.
#[derive(Debug, Clone, Copy)]
enum Change {
    System,
    User,
    Note,
    Image,
    Answer,
    Calls(usize),
    Result,
    ResultWithImage,
    /// Replaces the last message by another one.
    Replace,
    Remove(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => Just(Change::System),
        3 => Just(Change::User),
        3 => Just(Change::Note),
        1 => Just(Change::Image),
        3 => Just(Change::Answer),
        4 => (1_usize..3).prop_map(Change::Calls),
        6 => Just(Change::Result),
        1 => Just(Change::ResultWithImage),
        1 => Just(Change::Replace),
        1 => (0_usize..4).prop_map(Change::Remove),
    ]
}

fn image() -> MediaPart {
    MediaPart::bytes("image/png", vec![7; 5])
}

/// The messages of a conversation, and the calls that have no result.
#[derive(Default)]
struct Conversation {
    messages: Vec<Arc<ChatMessage>>,
    open: Vec<String>,
    made: usize,
}

impl Conversation {
    fn apply(&mut self, change: Change) {
        self.made += 1;
        let text = format!("\"{}\"\n", self.made);
        let message = match change {
            Change::System => ChatMessage::system(text),
            Change::User => ChatMessage::user(text),
            Change::Note | Change::Replace => ChatMessage::new(Role::User, text, Provenance::HOST),
            Change::Image => ChatMessage::user(Content::from(text).with_image(image())),
            Change::Answer => ChatMessage::assistant(text),
            Change::Calls(total) => {
                let ids = (0..total).map(|index| format!("c{}x{index}", self.made));
                self.open = ids.collect();
                let calls = self
                    .open
                    .iter()
                    .map(|id| ToolCall::new(id.as_str(), "now", "{\"a\":1}"));
                ChatMessage::calls("", calls.collect())
            }
            Change::Result => self.result(text.into()),
            Change::ResultWithImage => self.result(Content::from(text).with_image(image())),
            Change::Remove(back) => {
                let at = self.messages.len().checked_sub(back + 1);
                at.map(|at| self.messages.remove(at));
                return;
            }
        };
        if matches!(change, Change::Replace) {
            self.messages.pop();
        }
        self.messages.push(Arc::new(message));
    }

    /// Returns the result of the first open call, or of one that is not in the conversation.
    fn result(&mut self, content: Content) -> ChatMessage {
        let id = if self.open.is_empty() {
            "gone".to_owned()
        } else {
            self.open.remove(0)
        };
        ChatMessage::tool(id.as_str().into(), content)
    }
}

fn written(request: &Arc<ChatRequest>, secret: &str, cache: Option<&RequestCache>) -> String {
    let question = Question {
        model: "m",
        request,
        settings: &request.settings_over(None),
        scope: MarkScope([secret, "turn"]),
        is_streamed: false,
        cache,
    };
    String::from_utf8(body(question).unwrap().into()).unwrap()
}

proptest! {
    #[test]
    fn a_request_is_the_same_with_and_without_the_one_before(steps in vec(vec(change(), 0..4), 1..12)) {
        let mut conversation = Conversation::default();
        let cache = RequestCache::default();
        for (number, changes) in steps.into_iter().enumerate() {
            changes.into_iter().for_each(|change| conversation.apply(change));
            // Now and then another client of the turn asks, whose marks are others.
            let secret = if number % 5 == 4 { "other" } else { "own" };
            let request = Arc::new(ChatRequest::new(conversation.messages.iter().cloned()));
            prop_assert_eq!(written(&request, secret, Some(&cache)), written(&request, secret, None));
        }
    }
}

#[test]
fn what_two_requests_begin_with_is_copied() {
    let mut conversation = Conversation::default();
    let cache = RequestCache::default();
    let mut request = |changes: &[Change]| {
        changes.iter().for_each(|change| conversation.apply(*change));
        Arc::new(ChatRequest::new(conversation.messages.iter().cloned()))
    };
    let first = request(&[Change::System, Change::User, Change::Calls(1), Change::Result]);
    let text = written(&first, "own", Some(&cache));
    // A mark in what is kept shows up in the next request.
    let mut kept: WrittenMessages = cache.take().unwrap();
    kept.body = text.replace("\"user\"", "\"USER\"").into();
    cache.put(kept);
    let next = request(&[Change::Calls(2), Change::Result, Change::Result, Change::User]);
    let expected = written(&next, "own", None).replacen("\"user\"", "\"USER\"", 1);
    assert_eq!(written(&next, "own", Some(&cache)), expected);
    let kept: WrittenMessages = cache.take().unwrap();
    let seams: Vec<_> = kept.seams.iter().map(|seam| seam.messages).collect();
    assert_eq!(seams, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_long_body_is_not_kept() {
    let cache = RequestCache::default();
    let request = |len: usize| Arc::new(ChatRequest::new([ChatMessage::user("x".repeat(len))]));
    written(&request(MAX_KEPT), "own", Some(&cache));
    assert!(cache.take::<WrittenMessages>().is_none());
    written(&request(9), "own", Some(&cache));
    assert!(cache.take::<WrittenMessages>().is_some());
}
