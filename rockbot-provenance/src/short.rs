//! Short values, such as the id `13`: they stand in many texts by chance.
//!
//! A short value is the user's own only where the words around it explain it: it is quoted, a
//! word of the argument or the tool stands beside it ("file 13"), or it is a name.

use std::ops::Range;

use crate::evidence::Known;

/// Maximum length of a short value in characters, if it has no digit.
const MAX_LETTERS: usize = 3;

/// Maximum length of a short value in characters, if it has a digit.
const MAX_DIGITS: usize = 4;

/// Words that say that an id follows.
const ID_WORDS: [&str; 56] = [
    "id",
    "no",
    "nr",
    "number",
    "num",
    "nummer",
    "ref",
    "code",
    "called",
    "issue",
    "pr",
    "request",
    "ticket",
    "file",
    "event",
    "mail",
    "email",
    "message",
    "order",
    "invoice",
    "room",
    "dock",
    "gate",
    "table",
    "item",
    "row",
    "line",
    "page",
    "chapter",
    "case",
    "task",
    "job",
    "build",
    "version",
    "unit",
    "apartment",
    "flat",
    "seat",
    "track",
    "episode",
    "lane",
    "bay",
    "shelf",
    "customer",
    "member",
    "patient",
    "student",
    "class",
    "group",
    "team",
    "flight",
    "train",
    "bus",
    "slot",
    "batch",
    "lot",
];

/// Returns `true` for a value that stands in many texts by chance.
pub(crate) fn is_short(value: &str) -> bool {
    let length = value.chars().count();
    let has_digit = value.chars().any(|char| char.is_ascii_digit());
    let has_letter = value.chars().any(char::is_alphabetic);
    match (has_digit, has_letter) {
        // A class, a flat or a gate, such as 6b: few texts have it by chance.
        (true, true) => length < 2,
        (true, false) => length <= MAX_DIGITS,
        _ => length <= MAX_LETTERS,
    }
}

/// Reports whether a text of others mentions the short id, and not a number like it by chance.
pub(crate) fn is_mentioned(id: &str, text: &str) -> bool {
    let folded = text.to_ascii_lowercase();
    let id = id.to_ascii_lowercase();
    folded.match_indices(&id).any(|(at, _)| {
        let before = &folded[..at];
        let is_quoted = before.ends_with(['\'', '"', '#', '`']);
        let mut back = before
            .split(|char: char| !char.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .rev();
        is_quoted || back.by_ref().take(2).any(|word| ID_WORDS.contains(&word))
    })
}

/// Returns `true` if the words around the place say that the short `value` is meant there.
pub(crate) fn is_meant(value: &str, known: &Known<'_>, place: Range<usize>, names: &[String]) -> bool {
    let before = &known.folded[..place.start];
    let after = &known.folded[place.end..];
    let opens = before.chars().next_back();
    let closes = after.chars().next();
    let is_quoted = matches!(
        (opens, closes),
        (Some('\''), Some('\'')) | (Some('"'), Some('"')) | (Some('`'), Some('`'))
    ) || matches!(
        (opens, closes),
        (Some('“' | '‘' | '„' | '«'), Some('”' | '’' | '“' | '»'))
    );
    if is_quoted || opens == Some('#') {
        return true;
    }
    let is_named = |word: &str| {
        let word = word.trim_matches(|char: char| !char.is_alphanumeric());
        ID_WORDS.contains(&word) || names.iter().any(|name| is_same(name, word))
    };
    let mut back = before.split_whitespace().rev();
    if back.by_ref().take(2).any(is_named) {
        return true;
    }
    // A name of three letters in the user's own writing, such as Bob.
    let written = &known.raw[place];
    let is_name = value.chars().all(char::is_alphabetic)
        && value.chars().count() == MAX_LETTERS
        && written == value
        && written.starts_with(char::is_uppercase);
    is_name
        || after
            .split_whitespace()
            .take(1)
            .any(|word| names.iter().any(|name| is_same(name, word)))
}

/// Returns `true` for two forms of a word in the singular and the plural.
fn is_same(name: &str, word: &str) -> bool {
    name.len() > 2 && name.trim_end_matches('s') == word.trim_end_matches('s')
}
