//! Decides about JSON that goes on to arrive whether it can be a call.

use super::Opens;
use crate::call_object::{is_key_of_call, is_key_of_name, keys};
use crate::cursor::{Cursor, starts_with};
use crate::tools::Tools;

/// Decides about a text that begins with a bracket. The first key that no call has settles it.
pub(super) fn opens(text: &str, tools: &Tools) -> Opens {
    let object = text.strip_prefix('[').map_or(text, str::trim_start);
    if !object.starts_with('{') {
        return Opens::unclear_if(object.is_empty());
    }
    let mut rest = object.trim_start_matches('{').trim_start();
    loop {
        let Some((key, behind)) = quoted(rest) else {
            return Opens::unclear_if(may_be_key(rest, tools));
        };
        let value = behind.trim_start().strip_prefix(':').map_or("", str::trim_start);
        let is_name = is_key_of_name(key);
        let names_tool = is_name && (value.starts_with('{') || tools.resolve(name_in(value)).is_some());
        if is_key_of_call(key) || tools.spelled(key).is_some() || names_tool {
            return Opens::Yes;
        }
        let expected = keys().any(|expected| expected == key);
        let Some(behind) = scalar(value).filter(|_| expected) else {
            return Opens::unclear_if(expected && may_go_on(value));
        };
        rest = match behind.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None => return Opens::unclear_if(behind.is_empty()),
        };
    }
}

/// Returns the name at the start of a complete string.
fn name_in(value: &str) -> &str {
    let (string, _) = quoted(value).unwrap_or_default();
    Cursor::new(string).name()
}

/// Returns the string at the start of `text` and the text behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|char| matches!(char, '"' | '\''))?;
    text[1..].split_once(quote).filter(|(string, _)| !string.contains('\\'))
}

/// Returns `true` if `text` can become a key that a call has.
fn may_be_key(text: &str, tools: &Tools) -> bool {
    let Some(begun) = text.strip_prefix(['"', '\'']) else {
        return text.is_empty();
    };
    begun.contains('\\')
        || keys().any(|key| starts_with(key, begun))
        || tools.names().any(|key| starts_with(key, begun))
        || tools.may_be_spelled(begun)
}

/// Returns the text behind the string, number or word at the start of `text`, when there is some.
fn scalar(text: &str) -> Option<&str> {
    if let Some((_, behind)) = quoted(text) {
        return Some(behind.trim_start());
    }
    let behind = text.trim_start_matches(|char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.' | '+'));
    let scalar = behind.len() < text.len() && !behind.is_empty();
    scalar.then(|| behind.trim_start())
}

/// Returns `true` if the rest of a value may still arrive, or if the value was not looked at.
fn may_go_on(value: &str) -> bool {
    let is_word = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.' | '+');
    value.starts_with(['"', '\'', '[']) || value.chars().all(is_word)
}
