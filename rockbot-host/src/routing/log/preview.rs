//! How a text begins, without what looks like a key.

use rockbot_core::support::redact;

/// As much of a text is kept, in characters.
const PREVIEW_CHARS: usize = 150;

/// A word this long with digits in it may be a key.
const MAX_WORD: usize = 20;

pub(super) fn preview(text: &str) -> String {
    let is_key = |word: &str| word.len() >= MAX_WORD && word.bytes().any(|byte| byte.is_ascii_digit());
    // What is cut off is not looked at; a word that is cut could be the beginning of a key.
    let end = text
        .char_indices()
        .nth(4 * PREVIEW_CHARS)
        .map_or(text.len(), |(at, _)| at);
    let text = redact(&text[..end]);
    let words = text.split_inclusive(char::is_whitespace);
    let hidden = words.map(|word| if is_key(word.trim_end()) { "[redacted] " } else { word });
    let mut preview: String = hidden.collect::<String>().chars().take(PREVIEW_CHARS).collect();
    preview.truncate(preview.trim_end().len());
    preview
}
