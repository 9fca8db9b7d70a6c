//! Calls as lines of text.

use super::named;
use crate::answer::MalformedKind;
use crate::cursor::{Cursor, starts_with};
use crate::tools::{CallSite, Tools};

const NAME: &str = "tool_call_name";
const ARGUMENTS: &str = "tool_call_arguments";
const MARKS: [char; 4] = ['`', '*', '"', ' '];

/// Parses a name after `tool_call_name:`, then `tool_call_arguments:` on the same line or within
/// the next three.
pub(super) fn two_lines(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    marks(cursor);
    let name = cursor.name();
    let end = cursor.at;
    marks(cursor);
    let end = if cursor.line().is_empty() { cursor.at } else { end };
    let at_arguments = to_arguments(cursor);
    if !at_arguments {
        let alone = !name.is_empty() && cursor.line().trim_matches(MARKS).is_empty();
        cursor.at = if alone { end } else { start };
        return alone.then(|| vec![tools.call(name, Ok("{}".into()), start..end)]);
    }
    if name.is_empty() {
        cursor.at = start;
        return None;
    }
    let arguments = line_arguments(cursor);
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}

/// Parses the two lines of [`two_lines`] in backticks, in bold or with their keys in bold.
pub(crate) fn decorated(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    marks(cursor);
    let entries = if cursor.at > start && key(cursor, NAME) {
        two_lines(cursor, tools)
    } else {
        None
    };
    if entries.is_none() {
        cursor.at = start;
    }
    entries
}

/// Moves over backticks, asterisks, quotes and spaces.
fn marks(cursor: &mut Cursor<'_>) {
    let rest = cursor.rest();
    let length = rest.len() - rest.trim_start_matches(MARKS).len();
    cursor.at += length;
    // Running out shows at the next look.
    let _ = cursor.spend(length);
}

/// Moves past a key and its colon, marks around them included.
fn key(cursor: &mut Cursor<'_>, key: &str) -> bool {
    let start = cursor.at;
    marks(cursor);
    let found = cursor.eat(key) && {
        marks(cursor);
        cursor.eat(":")
    };
    if !found {
        cursor.at = start;
    }
    found
}

/// Moves past `tool_call_arguments:`, if it comes soon and before the next call.
fn to_arguments(cursor: &mut Cursor<'_>) -> bool {
    let start = cursor.at;
    for _ in 0..4 {
        if key(cursor, ARGUMENTS) {
            return true;
        }
        let text = cursor.line();
        if starts_with(text.trim_start_matches(MARKS), NAME) {
            break;
        }
        cursor.at += text.len();
        if !cursor.eat("\n") {
            break;
        }
        cursor.blank();
    }
    cursor.at = start;
    false
}

/// Parses arguments that begin on this line: an object that may span several lines, or nothing.
fn line_arguments(cursor: &mut Cursor<'_>) -> Result<String, MalformedKind> {
    let rest = cursor.rest();
    cursor.at += rest.len() - rest.trim_start_matches(['`', '*', ' ', '\t']).len();
    let text = cursor.line();
    let next_is_object = text.trim().is_empty() && cursor.rest()[text.len()..].trim_start().starts_with('{');
    let arguments = if text.starts_with('{') || next_is_object {
        let outer = std::mem::replace(&mut cursor.closes, &["\ntool_call_name:"]);
        let arguments = named::arguments(cursor);
        cursor.closes = outer;
        arguments
    } else {
        cursor.at += text.len();
        if text.trim_matches(MARKS).is_empty() {
            Ok("{}".into())
        } else {
            Err(MalformedKind::ArgumentsNotObject)
        }
    };
    let rest = cursor.rest();
    cursor.at += rest.len() - rest.trim_start_matches(['`', '*']).len();
    arguments
}

/// Parses a name after `Action:`, then a line `Action Input:` (ReAct).
pub(super) fn react(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let known = tools.resolve(cursor.name()).map(|name| &**name);
    let rest = cursor.line();
    cursor.at += rest.len();
    cursor.space();
    let (Some(name), "", true) = (known, rest.trim(), cursor.eat("Action Input:")) else {
        cursor.at = start;
        return None;
    };
    let arguments = line_arguments(cursor);
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}

/// Parses a known name after `>>>`, and an object on the next line.
pub(super) fn functionary(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let entries = name_line(cursor, tools);
    if entries.is_none() {
        cursor.at = start;
    }
    entries
}

/// Parses, after `<|recipient|>`, `get_weather\n<|content|>{…}<|stop|>` (Functionary 2).
pub(super) fn recipient(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    cursor.space();
    let name = cursor.name();
    cursor.space();
    if !cursor.eat("<|content|>") || tools.resolve(name).is_none() {
        cursor.at = start;
        return None;
    }
    let outer = std::mem::replace(&mut cursor.closes, &["<|stop|>", "<|from|>"]);
    let arguments = named::arguments(cursor);
    cursor.closes = outer;
    cursor.space();
    cursor.eat("<|stop|>");
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}

/// A line that is a known name, and an object on the next line; or the name, a colon and the
/// object. Needs no marker (GLM 4, Functionary, the original agent; Qwen2.5-Coder with the colon).
pub(crate) fn name_line(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let line = cursor.line();
    let name = match line.split_once(':') {
        Some((name, behind)) if behind.trim_start().starts_with('{') => name,
        _ => line,
    };
    let known = tools.spelled(name.trim()).map(|name| &**name);
    cursor.at += name.len();
    cursor.eat(":");
    cursor.space();
    let (Some(name), Some(b'{')) = (known, cursor.peek()) else {
        cursor.at = start;
        return None;
    };
    let arguments = named::arguments(cursor);
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}
