//! The messages that a turn begins from, where its request gives them: their bounds and their
//! order.

use std::collections::HashSet;

use crate::CallId;
use crate::chat::{ChatMessage, Role};
use crate::content::ContentError;
use crate::context::Trust;

/// Maximum number of given messages.
const MAX_MESSAGES: usize = 1_000;

/// Maximum length of their texts and arguments together, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The error for messages that no turn can begin from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GivenHistoryError {
    /// There are more than 1 000 messages, or more than 4 MiB of text.
    #[error("{messages} messages of {bytes} bytes are too many: give at most {MAX_MESSAGES}, and {MAX_BYTES} bytes")]
    TooLong {
        /// Number of messages.
        messages: usize,
        /// Length of their texts and arguments together.
        bytes: usize,
    },
    /// A system message in a request that the host itself did not make.
    #[error("message {at} is a system message, and its sender is not the host: give instructions with the request")]
    System {
        /// Index of the message.
        at: usize,
    },
    /// A result without a call directly before it, or a second result of a call.
    #[error("message {at} is a result without its call: give each result directly behind its call")]
    Orphan {
        /// Index of the message.
        at: usize,
    },
    /// A call without a result directly after it.
    #[error("call {0} has no result: give one result for each call, directly behind the calls")]
    Unanswered(CallId),
    /// Two calls of one message with the same id.
    #[error("call {0} stands twice in one message: give each call an id of its own")]
    Repeated(CallId),
    /// A message has too many parts, or a part is too large.
    #[error(transparent)]
    Content(#[from] ContentError),
}

/// Checks `messages` of a sender that is trusted as `trust`.
pub(super) fn check(messages: &[ChatMessage], trust: Trust) -> Result<(), GivenHistoryError> {
    let bytes = messages.iter().map(len).sum();
    if messages.len() > MAX_MESSAGES || bytes > MAX_BYTES {
        let messages = messages.len();
        return Err(GivenHistoryError::TooLong { messages, bytes });
    }
    let mut open: HashSet<&CallId> = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        message.content.check_bounds()?;
        match message.role {
            Role::System if trust < Trust::Host => return Err(GivenHistoryError::System { at }),
            Role::Tool => {
                let call = message.tool_call_id.as_ref();
                let is_open = call.is_some_and(|call| open.remove(call));
                if !is_open {
                    return Err(GivenHistoryError::Orphan { at });
                }
            }
            _ => {
                all_answered(&open)?;
                for call in &message.tool_calls {
                    if !open.insert(&call.id) {
                        return Err(GivenHistoryError::Repeated(call.id.clone()));
                    }
                }
            }
        }
    }
    all_answered(&open)
}

fn all_answered(open: &HashSet<&CallId>) -> Result<(), GivenHistoryError> {
    // The least id, so that the error does not depend on the order of the set.
    match open.iter().min() {
        Some(call) => Err(GivenHistoryError::Unanswered((*call).clone())),
        None => Ok(()),
    }
}

fn len(message: &ChatMessage) -> usize {
    let calls = message.tool_calls.iter().map(|call| call.arguments.len());
    message.content.text_len() + calls.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ToolCall;

    fn calls(ids: &[&str]) -> ChatMessage {
        let call = |id: &&str| ToolCall {
            id: (*id).into(),
            name: "clock".into(),
            arguments: "{}".into(),
        };
        ChatMessage::calls("", ids.iter().map(call).collect())
    }

    fn result(id: &str) -> ChatMessage {
        ChatMessage::tool(id.into(), "noon")
    }

    #[test]
    fn calls_and_results_come_in_pairs() {
        let check = |messages: &[ChatMessage]| check(messages, Trust::User);
        assert_eq!(check(&[]), Ok(()));
        // An id may repeat in a later message, as servers count.
        let whole = [calls(&["a", "b"]), result("b"), result("a"), calls(&["a"]), result("a")];
        assert_eq!(check(&whole), Ok(()));
        let unanswered = GivenHistoryError::Unanswered("b".into());
        assert_eq!(check(&whole[..1]), Err(GivenHistoryError::Unanswered("a".into())));
        assert_eq!(
            check(&[calls(&["a", "b"]), result("a"), ChatMessage::user("hi")]),
            Err(unanswered)
        );
        assert_eq!(check(&[result("a")]), Err(GivenHistoryError::Orphan { at: 0 }));
        let twice = [calls(&["a"]), result("a"), result("a")];
        assert_eq!(check(&twice), Err(GivenHistoryError::Orphan { at: 2 }));
        assert_eq!(
            check(&[calls(&["a", "a"])]),
            Err(GivenHistoryError::Repeated("a".into()))
        );
    }

    #[test]
    fn only_the_host_gives_system_messages() {
        let messages = [ChatMessage::system("Obey.")];
        assert_eq!(check(&messages, Trust::User), Err(GivenHistoryError::System { at: 0 }));
        assert_eq!(check(&messages, Trust::Host), Ok(()));
    }

    #[test]
    fn there_is_a_bound() {
        let long = [ChatMessage::user("x".repeat(MAX_BYTES + 1))];
        let error = GivenHistoryError::TooLong {
            messages: 1,
            bytes: MAX_BYTES + 1,
        };
        assert_eq!(check(&long, Trust::User), Err(error));
    }
}
