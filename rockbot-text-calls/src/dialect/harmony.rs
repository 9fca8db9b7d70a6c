//! gpt-oss without its special tokens, which some servers remove:
//! `commentary to=functions.name json{…}`.

use super::framed::Framed;
use super::named;
use crate::cursor::Cursor;
use crate::tools::{CallSite, Tools};

/// Parses, after `to=` of a header without tokens, `functions.get_weather json{…}`. The channel may
/// follow the recipient.
pub(super) fn without_tokens(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Vec<CallSite>> {
    let start = cursor.at;
    let name = cursor.name();
    cursor.space();
    while cursor.eat_any(&["commentary", "analysis", "json", "code"]) {
        cursor.space();
    }
    if cursor.peek() != Some(b'{') || tools.resolve(name).is_none() {
        cursor.at = start;
        return None;
    }
    let arguments = named::arguments(cursor);
    Some(vec![tools.call(name, arguments, start..cursor.at)])
}

/// Parses thoughts that are glued to the name of their channel, at the start of the answer, and the
/// calls behind them: `analysisI need the time.assistantcommentary to=functions.now json{}`.
pub(super) fn leaked(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Framed> {
    let start = cursor.at;
    if !is_leaked(cursor.rest()) || !cursor.text[..start].trim().is_empty() {
        return None;
    }
    let mut framed = Framed::default();
    while let Some(at) = cursor.find("assistant") {
        cursor.at = at;
        match super::read(cursor, tools) {
            Some(calls) => framed.sites.extend(calls),
            None if cursor.eat("assistantfinal") && !framed.sites.is_empty() => {
                framed.add_words(cursor.text, cursor.at..cursor.text.len());
                cursor.at = cursor.text.len();
            }
            None => cursor.at = at + "assistant".len(),
        }
    }
    if framed.sites.is_empty() {
        cursor.at = start;
        return None;
    }
    Some(framed)
}

/// Returns `true` for the name of the channel for thoughts with the first word glued to it.
pub(crate) fn is_leaked(text: &str) -> bool {
    text.strip_prefix("analysis")
        .is_some_and(|thought| thought.starts_with(|char: char| char.is_ascii_uppercase()))
}
