//! Decides by position whether a text is a call or is written about calls.
//!
//! The rule, for forms with a marker of their own: the calls begin at the start of a line and
//! fill their lines, outside fences and reasoning. They may also begin after the end of a
//! sentence, or glued to a word when the marker is a special token that people do not type, if
//! only calls follow. They are quoted, and no calls, when
//!
//! * words follow on the same line, a closing tag of something else follows, or the line is a
//!   list item, a table or a quotation, so that the call does not stand at its start
//! * the line before introduces them (a colon, an open quote, a heading, a list item) *and* prose
//!   follows; when an answer quoted calls once, the introduction alone is enough
//! * they cannot be read and prose follows
//!
//! Forms without a marker, and calls in a fence, must end the answer, and the words before them
//! must announce them (`announcement`). Here alone words count, because a call and an example of
//! a call look the same.

use crate::dialect::is_special;

/// Returns `true` if the last line of `before` introduces the text behind it.
pub(super) fn introduces(before: &str) -> bool {
    let before = before.trim_end();
    if before.ends_with([':', '：', '"', '“', '«', '(', '>', '|']) {
        return true;
    }
    let tail = tail(before, 240);
    let line = tail.rsplit('\n').next().unwrap_or_default().trim_start();
    let numbered = line.trim_start_matches(|char: char| char.is_ascii_digit());
    let item =
        line.starts_with(['-', '*', '#', '+']) || numbered.len() < line.len() && numbered.starts_with(['.', ')']);
    item && tail.len() < 240 || line.starts_with("**") && line.ends_with("**")
}

/// Returns `true` if the text after calls goes on with a sentence that began before them.
pub(super) fn continues(after: &str) -> bool {
    !after.trim_start().starts_with(char::is_uppercase)
}

/// Returns `true` if the text after calls shows that they are enclosed in something else.
pub(super) fn encloses(after: &str) -> bool {
    after.starts_with("</") || after.starts_with(['"', '”', '»', ')'])
}

/// Returns `true` if calls can begin after `before`, in the middle of a line.
pub(super) fn goes_on(before: &str, opener: &str) -> bool {
    let word_before = before.trim_end_matches([' ', '\t']);
    let Some(last) = word_before.chars().next_back() else {
        return false;
    };
    if matches!(last, '.' | '!' | '?' | '…' | '。' | '！' | '？') {
        // Not behind `e.g.`
        let word = tail(word_before, 12)
            .rsplit([' ', '\n', '('])
            .next()
            .unwrap_or_default();
        let stops = word.trim_end_matches(['.', '!', '?']).contains('.');
        return !stops;
    }
    is_special(opener) && word_before.len() == before.len() && (last.is_alphanumeric() || matches!(last, ':' | '>'))
}

/// Returns about the last `length` bytes, from a character boundary.
pub(super) fn tail(text: &str, length: usize) -> &str {
    let mut start = text.len().saturating_sub(length);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}
