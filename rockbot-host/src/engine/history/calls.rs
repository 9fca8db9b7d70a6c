//! The calls of a turn as its conversation keeps them: bounded, each with its result.
//!
//! Conversations keep calls without the model's words beside them: these words did not pass the
//! answer filter, and an export takes everything that is kept out of the host.

use std::borrow::Cow;
use std::sync::Arc;

use rockbot_core::ToolName;
use rockbot_core::chat::{ChatMessage, ToolCall};
use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::store::{CallRound, PastCall};
use rockbot_core::trust::Trust;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::text_calling::is_from_text;
use crate::turn::Turn;

/// Maximum number of calls that are kept of a turn; the last calls are kept.
const MAX_CALLS: usize = 16;

/// Maximum number of bytes that are kept of a turn's calls.
const MAX_BYTES: usize = 8 * 1024;

/// Maximum number of bytes that are kept of a result.
const MAX_RESULT: usize = 2_000;

/// Maximum number of bytes that are kept of a call's arguments.
const MAX_ARGUMENTS: usize = 1_000;

/// Maximum number of bytes that are kept of a text in arguments that are too long.
const MAX_ARGUMENT: usize = 100;

/// Returns the calls that `turn` made, with their results: the last calls that fit.
///
/// The words of the model beside a call are left out: they did not pass the answer filter.
pub(in crate::engine) fn rounds_of(turn: &Turn) -> Vec<CallRound> {
    let messages = turn.own_messages();
    let rounds = messages.iter().enumerate().rev().filter_map(|(at, message)| {
        let calls = || message.tool_calls.iter().filter(|call| !turn.is_own_call(call));
        let first = calls().next()?;
        let past = calls().map(move |call| past_call(call, &messages[at + 1..]));
        Some((past, is_from_text(&first.id)))
    });
    last_that_fit(rounds)
}

/// Returns the last calls that a document has for a turn, within the same limits. Arguments that
/// are no JSON are left out, because servers parse them.
pub(crate) fn bounded(rounds: &[CallRound]) -> Vec<CallRound> {
    let kept = |call: &PastCall| {
        let is_json = serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok();
        let arguments = if is_json {
            kept_arguments(&call.arguments)
        } else {
            "{}".into()
        };
        PastCall::new(call.name.clone(), arguments, kept_result(&call.name, &call.result))
    };
    let rounds = rounds.iter().rev();
    last_that_fit(rounds.map(|round| (round.calls.iter().map(kept), round.from_text)))
}

/// Returns the rounds that there is room for, oldest first. `rounds` come newest first, each with
/// `true` if its calls are from text. A call is copied only while there is room.
fn last_that_fit<R: IntoIterator<Item = PastCall>>(rounds: impl Iterator<Item = (R, bool)>) -> Vec<CallRound> {
    let mut room = Room {
        calls: MAX_CALLS,
        bytes: MAX_BYTES,
    };
    let admitted = rounds.map(|(calls, from_text)| {
        let calls = calls.into_iter().map_while(|call| room.admit(call)).collect();
        CallRound::new(calls).with_from_text(from_text)
    });
    let mut rounds: Vec<_> = admitted.take_while(|round| !round.calls.is_empty()).collect();
    rounds.reverse();
    rounds
}

/// The room that is left for the calls of a turn.
struct Room {
    calls: usize,
    bytes: usize,
}

impl Room {
    fn admit(&mut self, call: PastCall) -> Option<PastCall> {
        let bytes = self.bytes.checked_sub(call.text_len())?;
        (self.calls, self.bytes) = (self.calls.checked_sub(1)?, bytes);
        Some(call)
    }
}

/// Returns `call` with its result, which is among `behind` it.
fn past_call(call: &ToolCall, behind: &[Arc<ChatMessage>]) -> PastCall {
    let result = behind
        .iter()
        .find(|message| message.tool_call_id.as_ref() == Some(&call.id));
    let result = result
        .map(|message| kept_result(&call.name, &message.content))
        .unwrap_or_default();
    PastCall::new(call.name.clone(), kept_arguments(&call.arguments), result)
}

/// Returns a result as it is kept: in words, shortened in its middle, with the origin of each part.
///
/// The origin of most results is the tool. It is left out, as the default of the place.
fn kept_result(tool: &ToolName, result: &Content) -> Content {
    let parts = result.parts();
    let longest = MAX_RESULT / parts.len().max(1);
    let part = |part: &ContentPart| {
        let words = part
            .as_text()
            .map_or_else(|| Cow::Owned(part.to_string()), Cow::Borrowed);
        let text = ContentPart::text(shortened(&words, longest));
        let from = part.provenance();
        if from.is_unknown() || is_outside(from, tool) {
            text
        } else {
            text.with_provenance(part.provenance().clone())
        }
    };
    parts.iter().map(part).collect::<Vec<_>>().into()
}

/// Returns `true` for the origin of an outside tool's result.
fn is_outside(from: &Provenance, tool: &ToolName) -> bool {
    let name = from.source.strip_prefix("tool");
    let is_of_tool = name.is_some_and(|name| name.is_empty() || name.strip_prefix(':') == Some(tool.as_str()));
    from.trust == Trust::Untrusted && is_of_tool
}

/// Returns `text` without its middle if it is longer than `longest` bytes. No character is cut in
/// two.
fn shortened(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    // Enough for the note itself.
    let kept = longest.saturating_sub(60);
    let head = text.floor_char_boundary(kept * 7 / 10);
    let tail = text.ceil_char_boundary(text.len() - kept * 3 / 10);
    let left_out = tail - head;
    format!(
        "{}\n[{left_out} bytes of this result are left out]\n{}",
        &text[..head],
        &text[tail..]
    )
}

/// Returns arguments as they are kept: if they are too long, with shorter texts, else without
/// members.
///
/// They stay JSON: servers parse them.
fn kept_arguments(arguments: &Arc<str>) -> Arc<str> {
    if arguments.len() <= MAX_ARGUMENTS {
        return arguments.clone();
    }
    let shorter = serde_json::from_str(arguments).ok().map(|mut value: Value| {
        shorten_texts(&mut value);
        value.to_string()
    });
    let shorter = shorter.filter(|shorter| shorter.len() <= MAX_ARGUMENTS);
    shorter.unwrap_or_else(|| "{}".to_owned()).into()
}

/// Shortens the texts of a value. Values that serde_json parsed are not nested deeper than 128
/// levels.
fn shorten_texts(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_ARGUMENT => {
            text.truncate(text.floor_char_boundary(MAX_ARGUMENT));
            text.push('…');
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_texts),
        Value::Object(members) => members.values_mut().for_each(shorten_texts),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_middle_of_a_long_result_is_left_out() {
        let long = format!("begin{}end", "x".repeat(5_000));
        let kept = kept_result(&"page".into(), &Content::from(long).attributed(Provenance::TOOL));
        let text = kept.as_text().unwrap();
        assert!(text.starts_with("beginx") && text.ends_with("xend"), "{text}");
        assert!(text.contains("\n[3068 bytes of this result are left out]\n"), "{text}");
        assert!(kept.parts()[0].provenance().is_unknown(), "the tool is the default");
    }

    #[test]
    fn long_arguments_stay_json() {
        let long = format!(r#"{{"to":"ann","text":"{}"}}"#, "é".repeat(2_000));
        let kept: Value = serde_json::from_str(&kept_arguments(&long.into())).unwrap();
        assert_eq!(kept["to"], "ann");
        assert_eq!(kept["text"], format!("{}…", "é".repeat(50)));
        let cut = format!(r#"{{"text":"{}"#, "x".repeat(2_000));
        assert_eq!(&*kept_arguments(&cut.into()), "{}");
    }

    proptest! {
        #[test]
        fn a_result_is_never_longer_than_its_bound(text in "\\PC{0,3000}") {
            let kept = shortened(&text, MAX_RESULT);
            prop_assert!(kept.len() <= MAX_RESULT);
            prop_assert!(text.len() > MAX_RESULT || kept == text);
        }
    }
}
