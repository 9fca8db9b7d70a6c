//! Decides by position whether a text is a call or is written about calls.
//!
//! The rule, for forms with a marker of their own: the calls begin at the start of a line and fill their lines,
//! outside fences and reasoning. They may also begin after the end of a sentence, or glued to a word when the
//! marker is a special token that people do not type, if only calls follow. They are quoted, and no calls, when
//!
//! * words follow on the same line, a closing tag of something else follows, or the line is a list item, a
//!   table or a quotation, so that the call does not stand at its start
//! * the line before introduces them (a colon, an open quote, a heading, a list item) *and* prose follows; when
//!   an answer quoted calls once, the introduction alone is enough
//! * they cannot be read and prose follows
//!
//! Forms without a marker, and calls in a fence, must end the answer. The words before them must not explain or
//! quote them: their last sentence may introduce them only if it says what the model does next. Here alone words count,
//! because a call and an example of a call look the same.

use crate::dialect::is_special;

/// Returns `true` if the last line of `before` introduces what follows it.
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

/// Words of texts that explain, quote or refuse a call.
const EXPLAINING: [&str; 48] = [
    "example",
    "e.g.",
    "for instance",
    "look like",
    "looks like",
    "looked like",
    "like this",
    "like so",
    "such as",
    "format",
    "syntax",
    "schema",
    "you can ",
    "you could",
    "you would",
    "you'd ",
    "you may ",
    "you have to",
    "you need",
    "you should",
    "you write",
    "would ",
    "documentation",
    "snippet",
    "template",
    "log ",
    "logged",
    "wrote",
    "written",
    "said",
    "says",
    "quote",
    "the page",
    "the file",
    "contains",
    "is how",
    "this is",
    "these are",
    "shows",
    "was ",
    "n't ",
    "not ",
    "never",
    "instead of",
    "run this",
    "use this",
    "try this",
    "send this",
];

/// Words with which a model says what it does next.
const INTENDING: [&str; 16] = [
    "i'll ",
    "i’ll ",
    "i will ",
    "let me ",
    "let's ",
    "let’s ",
    "i'm going to",
    "i am going to",
    "i need to",
    "i should",
    "i have to",
    "i must ",
    "we need to",
    "we should",
    "calling ",
    "checking ",
];

/// Returns `true` if a form without a marker can be a call after `before`: it does not explain or quote what follows,
/// and introduces it only with the model's own next step.
pub(super) fn presents(before: &str) -> bool {
    let last = tail(before.trim_end(), 240).to_ascii_lowercase();
    let paragraph = last.rsplit("\n\n").next().unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| paragraph.contains(word));
    !has(&EXPLAINING) && (!introduces(before) || has(&INTENDING))
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
fn tail(text: &str, length: usize) -> &str {
    let mut start = text.len().saturating_sub(length);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}
