//! Calls as JSON: an object, or a list of them.

use crate::call_object::marked;
use crate::cursor::Cursor;
use crate::tools::{CallSite, Tools};

/// Parses an object, or a list of objects.
pub(super) fn read(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    match cursor.peek()? {
        b'{' => marked(cursor, tools).map(|entry| vec![entry]),
        b'[' => list(cursor, tools),
        _ => None,
    }
}

/// Parses a list of objects. The closing bracket may be missing at the end of the payload.
pub(super) fn list(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let mut entries = Vec::new();
    if !cursor.eat("[") {
        return None;
    }
    loop {
        super::separators(cursor);
        if cursor.eat("]") {
            break;
        }
        let entry = if cursor.peek() == Some(b'{') {
            marked(cursor, tools)
        } else {
            None
        };
        match entry {
            Some(entry) => entries.push(entry),
            None if cursor.is_at_end() => break,
            None => {
                cursor.at = start;
                return None;
            }
        }
    }
    Some(entries).filter(|entries| !entries.is_empty()).or_else(|| {
        cursor.at = start;
        None
    })
}

/// Parses either of them in a fence of its own. Every object must have a name: other JSON stands
/// in such fences, too.
pub(super) fn fenced(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let fence = cursor.eat("```");
    cursor.eat("json");
    cursor.space();
    let outer = std::mem::replace(&mut cursor.closes, &["```"]);
    let entries = if fence { read(cursor, tools) } else { None };
    cursor.closes = outer;
    let named = |entry: &CallSite| entry.call.as_ref().map_or_else(|flaw| flaw.name.is_some(), |_| true);
    let entries = entries.filter(|entries| entries.iter().all(named));
    if entries.is_none() {
        cursor.at = start;
        return None;
    }
    cursor.space();
    cursor.eat("```");
    entries
}

/// Parses, after `<|message_model|>`, `get_weather<|content_invoke_tool_json|>{…}<|end_message|>`
/// (Inkling).
pub(super) fn inkling(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    cursor.name();
    let entries = if cursor.eat("<|content_invoke_tool_json|>") {
        let outer = std::mem::replace(&mut cursor.closes, &["<|end_message|>"]);
        let entries = read(cursor, tools);
        cursor.closes = outer;
        entries
    } else {
        None
    };
    if entries.is_none() {
        cursor.at = start;
    }
    cursor.eat("<|end_message|>");
    entries
}

/// Parses, after `<|message_sep|>`, the message of a call (GigaChat 3).
pub(super) fn separated(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    cursor.space();
    if cursor.rest().starts_with("function call") {
        super::read(cursor, tools)
    } else {
        None
    }
}
