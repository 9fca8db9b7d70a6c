//! gpt-oss: messages with a channel and a recipient, `commentary to=functions.name <|message|>{…}<|call|>`.

use super::named;
use crate::cursor::Cursor;
use crate::tools::{CallSite, Tools};

const CLOSES: &[&str] = &["<|call|>", "<|end|>", "<|return|>"];

/// Parses messages to tools, and the reasoning before them, which is hidden with them.
pub(super) fn read(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    loop {
        let header = header(cursor);
        let recipient = header
            .and_then(|header| header.split_once("to="))
            .map(|(_, recipient)| recipient);
        if let Some(recipient) = recipient {
            let name = Cursor::new(recipient).name();
            let outer = std::mem::replace(&mut cursor.closes, CLOSES);
            let arguments = named::arguments(cursor);
            cursor.closes = outer;
            cursor.space();
            cursor.eat_any(CLOSES);
            return Some(vec![tools.call(name, arguments, start..cursor.at)]);
        }
        let is_thought = header.is_some_and(|header| header.trim_start().starts_with("analysis"));
        let end = if is_thought { cursor.find("<|end|>") } else { None };
        let Some(end) = end else {
            cursor.at = start;
            return None;
        };
        cursor.at = end + "<|end|>".len();
        cursor.space();
        cursor.eat("<|start|>assistant");
        cursor.space();
        cursor.eat("<|channel|>");
    }
}

/// Parses, after `commentary to=`, `functions.get_weather json{…}`: a message whose special tokens were removed.
pub(super) fn without_tokens(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let name = cursor.name();
    cursor.space();
    cursor.eat_any(&["json", "code"]);
    cursor.space();
    if cursor.peek() != Some(b'{') || tools.resolve(name).is_none() {
        cursor.at = start;
        return None;
    }
    let arguments = named::arguments(cursor);
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}

/// Moves past `<|message|>` and returns the header before it.
fn header<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let rest = cursor.rest();
    let mut length = rest.len().min(256);
    while !rest.is_char_boundary(length) {
        length -= 1;
    }
    let end = rest[..length].find("<|message|>")?;
    cursor.at += end + "<|message|>".len();
    Some(rest[..end].trim_start_matches("<|channel|>"))
}
