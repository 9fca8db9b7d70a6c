//! Detection of repeated calls: a model that makes the same call again with the same result reads a note about it.

use std::sync::Arc;

use rockbot_core::ToolName;
use rockbot_core::chat::ToolCall;

/// Number of consecutive equal calls from which on the result carries the note. Twice is common: models check a result
/// once more before they rely on it.
const NOTE_FROM: u32 = 3;

/// Number of bytes of a result that are compared. Results that differ do so early, and the copy is kept for each call.
const COMPARED_BYTES: usize = 500;

const NOTE: &str = "\n[note: you have made this call several times, and its result does not change. Do something else, or answer \
     with what you have.]";

/// The last call, and the number of times that it was made in a row.
#[derive(Debug, Clone, Default)]
pub(in crate::turn) struct Repeats {
    last: Option<LastCall>,
    times: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct LastCall {
    tool: ToolName,
    arguments: Arc<str>,
    result: String,
}

impl Repeats {
    /// Applies a call that returned `content`, and returns the note for the model if it repeats itself.
    pub(in crate::turn) fn observe(&mut self, call: &ToolCall, content: &str) -> Option<&'static str> {
        let is_same = self.last.as_ref().is_some_and(|last| {
            last.tool == call.name && last.arguments == call.arguments && last.result == normalized(content)
        });
        if !is_same {
            self.times = 1;
            self.last = Some(LastCall {
                tool: call.name.clone(),
                arguments: call.arguments.clone(),
                result: normalized(content),
            });
            return None;
        }
        self.times += 1;
        (self.times >= NOTE_FROM).then_some(NOTE)
    }
}

/// Returns the beginning of a result without the parts that differ in each call: runs of digits (times, counters) and
/// long hexadecimal ids become `#`.
fn normalized(content: &str) -> String {
    let beginning = &content[..content.floor_char_boundary(COMPARED_BYTES)];
    let is_word = |character: char| character.is_ascii_alphanumeric();
    let mut text = String::with_capacity(beginning.len());
    let mut rest = beginning;
    while let Some(first) = rest.chars().next() {
        let end = rest
            .find(|character| is_word(character) != is_word(first))
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let is_id = word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = word.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        text.push_str(if is_id || is_number { "#" } else { word });
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(results: &[&str], expected: &[bool]) {
        let call = ToolCall {
            id: "1".into(),
            name: "look".into(),
            arguments: "{}".into(),
        };
        let mut repeats = Repeats::default();
        let noted: Vec<_> = results
            .iter()
            .map(|result| repeats.observe(&call, result).is_some())
            .collect();
        assert_eq!(noted, expected, "{results:?}");
    }

    #[test]
    fn the_third_equal_result_carries_the_note() {
        check(
            &["a", "a", "a", "a", "b", "a"],
            &[false, false, true, true, false, false],
        );
    }

    #[test]
    fn times_and_ids_do_not_count() {
        let results = ["at 10:01 deadbeef42", "at 10:02 deadbeef43", "at 11:59 cafebabe00"];
        check(&results, &[false, false, true]);
        check(&["red", "green", "blue"], &[false, false, false]);
    }
}
