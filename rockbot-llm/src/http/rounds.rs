//! Calls and their results, in the order that every provider accepts.
//!
//! Servers refuse a call without its result, a result without its call, and anything between the
//! results of one answer. A conversation that was shortened, joined by a user, or edited by a
//! program may break these rules, and then one refused request would make every later request of
//! the conversation fail.

use std::borrow::Cow;
use std::sync::Arc;

use rockbot_core::CallId;
use rockbot_core::chat::{ChatMessage, Role};
use rockbot_core::content::{Content, Provenance};

use super::stand_in::{NO_RESULT, ORPHAN};

/// Returns `messages` with the results of each answer directly behind it, one for each of its
/// calls. Messages that stood between them follow. Nothing is copied if that is so already.
pub(crate) fn in_rounds(messages: &[Arc<ChatMessage>]) -> Cow<'_, [Arc<ChatMessage>]> {
    if is_in_rounds(messages) {
        Cow::Borrowed(messages)
    } else {
        Cow::Owned(Rounds::default().arrange(messages))
    }
}

/// Returns `rounds` with one call in each answer: an answer that made several becomes as many,
/// each with its result behind it. The first has the words and the reasoning. Nothing is copied
/// if that is so already.
pub(crate) fn with_single_calls(rounds: Cow<'_, [Arc<ChatMessage>]>) -> Cow<'_, [Arc<ChatMessage>]> {
    if rounds.iter().all(|message| message.tool_calls.len() < 2) {
        return rounds;
    }
    let mut single = Vec::with_capacity(2 * rounds.len());
    let mut rest = &*rounds;
    while let [first, behind @ ..] = rest {
        let (results, behind) = behind.split_at_checked(first.tool_calls.len()).unwrap_or_default();
        match first.tool_calls.len() {
            0 | 1 => single.extend([first].into_iter().chain(results).cloned()),
            _ => push_single_calls(&mut single, first, results.to_vec()),
        }
        rest = behind;
    }
    Cow::Owned(single)
}

fn push_single_calls(single: &mut Vec<Arc<ChatMessage>>, answer: &ChatMessage, mut results: Vec<Arc<ChatMessage>>) {
    for (index, call) in answer.tool_calls.iter().enumerate() {
        let mut part = match index {
            0 => answer.clone(),
            _ => ChatMessage::calls("", Vec::new()),
        };
        part.tool_calls = vec![call.clone()];
        single.push(Arc::new(part));
        let of_call = results.iter().position(|result| is_result_of(result, &call.id));
        single.extend(of_call.map(|at| results.remove(at)));
    }
}

fn is_in_rounds(mut messages: &[Arc<ChatMessage>]) -> bool {
    while let [first, behind @ ..] = messages {
        let Some((results, rest)) = behind.split_at_checked(first.tool_calls.len()) else {
            return false;
        };
        let mut pairs = first.tool_calls.iter().zip(results);
        if first.role == Role::Tool || !pairs.all(|(call, result)| is_result_of(result, &call.id)) {
            return false;
        }
        messages = rest;
    }
    true
}

fn is_result_of(message: &ChatMessage, call: &CallId) -> bool {
    message.role == Role::Tool && message.tool_call_id.as_ref() == Some(call)
}

#[derive(Default)]
struct Rounds<'a> {
    arranged: Vec<Arc<ChatMessage>>,
    /// Calls of the last answer that have no result yet.
    open_calls: Vec<&'a CallId>,
    /// Messages that came before the last of these results.
    between: Vec<Arc<ChatMessage>>,
}

impl<'a> Rounds<'a> {
    fn arrange(mut self, messages: &'a [Arc<ChatMessage>]) -> Vec<Arc<ChatMessage>> {
        for message in messages {
            match message.role {
                Role::Tool => self.push_result(message),
                Role::Assistant => {
                    self.close();
                    self.arranged.push(message.clone());
                    self.open_calls = message.tool_calls.iter().map(|call| &call.id).collect();
                }
                Role::System | Role::User if self.open_calls.is_empty() => self.arranged.push(message.clone()),
                Role::System | Role::User => self.between.push(message.clone()),
            }
        }
        self.close();
        self.arranged
    }

    fn push_result(&mut self, message: &Arc<ChatMessage>) {
        let open = self.open_calls.iter().position(|call| is_result_of(message, call));
        if let Some(at) = open {
            self.open_calls.remove(at);
            self.arranged.push(message.clone());
        } else if !message.content.is_blank() {
            self.between.push(Arc::new(orphan(message)));
        }
        if self.open_calls.is_empty() {
            self.arranged.append(&mut self.between);
        }
    }

    /// Ends a round: the model speaks again, so calls that have no result by now will get none.
    fn close(&mut self) {
        let missing = self.open_calls.drain(..);
        let missing = missing.map(|call| Arc::new(ChatMessage::tool(call.clone(), NO_RESULT)));
        self.arranged.extend(missing);
        self.arranged.append(&mut self.between);
    }
}

/// Returns a result whose call is not in the conversation any more as a message in the user's
/// role. It is still the tool's.
fn orphan(result: &ChatMessage) -> ChatMessage {
    let mut content = Content::from(ORPHAN);
    content.extend(result.content.parts().iter().cloned());
    ChatMessage::new(Role::User, content, Provenance::TOOL).because(result.why())
}

#[cfg(test)]
mod tests {
    use rockbot_core::chat::ToolCall;

    use super::*;

    fn calls(ids: &[&str]) -> ChatMessage {
        let calls = ids.iter().map(|id| ToolCall::new(*id, "now", "{}"));
        ChatMessage::calls("", calls.collect())
    }

    fn result(id: &str) -> ChatMessage {
        ChatMessage::tool(id.into(), format!("result {id}"))
    }

    /// Returns the messages in rounds, one line each, and whether they were copied.
    fn arranged(messages: impl IntoIterator<Item = ChatMessage>) -> (Vec<String>, bool) {
        let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
        let arranged = in_rounds(&messages);
        let line = |message: &Arc<ChatMessage>| match message.tool_calls.as_slice() {
            [] => format!("{:?} {}", message.role, message.text()),
            calls => calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join("+"),
        };
        let lines = arranged.iter().map(line).collect();
        (lines, matches!(arranged, Cow::Owned(_)))
    }

    #[test]
    fn what_is_in_rounds_is_not_copied() {
        let user = || ChatMessage::user("hi");
        let (lines, is_copied) = arranged([
            user(),
            calls(&["a", "b"]),
            result("a"),
            result("b"),
            user(),
            ChatMessage::assistant("so"),
            calls(&["c"]),
            result("c"),
        ]);
        assert_eq!((lines.len(), is_copied), (8, false));
        assert_eq!(arranged([]), (vec![], false));
    }

    #[test]
    fn an_answer_with_several_calls_becomes_answers_with_one() {
        let mut several = calls(&["a", "b", "c"]);
        several.content = "Let me see.".into();
        let messages = [
            ChatMessage::user("hi"),
            several,
            result("b"),
            result("a"),
            result("c"),
            calls(&["d"]),
            result("d"),
            ChatMessage::assistant("so"),
        ];
        let messages = messages.map(Arc::new);
        let line = |message: &Arc<ChatMessage>| {
            let calls = message.tool_calls.iter().map(|call| format!("[{}]", call.id.as_str()));
            message.text().to_string() + &calls.collect::<String>()
        };
        let single = with_single_calls(in_rounds(&messages));
        let expected = [
            "hi",
            "Let me see.[a]",
            "result a",
            "[b]",
            "result b",
            "[c]",
            "result c",
            "[d]",
            "result d",
            "so",
        ];
        assert_eq!(single.iter().map(line).collect::<Vec<_>>(), expected);
        let single: Vec<_> = single.into_owned();
        assert!(matches!(with_single_calls(in_rounds(&single)), Cow::Borrowed(_)));
    }

    #[test]
    fn what_stands_between_results_follows_them() {
        let (lines, is_copied) = arranged([
            calls(&["a", "b"]),
            ChatMessage::user("quick"),
            result("b"),
            ChatMessage::user("please"),
            result("a"),
            calls(&["c"]),
            ChatMessage::user("now"),
            result("c"),
        ]);
        let expected = [
            "a+b",
            "Tool result b",
            "Tool result a",
            "User quick",
            "User please",
            "c",
            "Tool result c",
            "User now",
        ];
        assert_eq!((lines, is_copied), (expected.map(str::to_owned).to_vec(), true));
    }

    #[test]
    fn each_call_has_a_result_and_each_result_a_call() {
        let (lines, _) = arranged([
            result("gone"),
            calls(&["a", "b"]),
            result("b"),
            ChatMessage::user("stop"),
            ChatMessage::assistant("so"),
            result("a"),
            calls(&["c"]),
        ]);
        let expected = [
            "User Result of an earlier tool call:\nresult gone",
            "a+b",
            "Tool result b",
            "Tool No result was recorded for this call.",
            "User stop",
            "Assistant so",
            "User Result of an earlier tool call:\nresult a",
            "c",
            "Tool No result was recorded for this call.",
        ];
        assert_eq!(lines, expected);
        let messages = [Arc::new(result("gone"))];
        assert_eq!(
            in_rounds(&messages)[0].content.parts()[0].provenance(),
            &Provenance::TOOL
        );
    }
}
