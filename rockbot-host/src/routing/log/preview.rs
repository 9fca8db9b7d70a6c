//! Previews of texts with secrets redacted.

use rockbot_core::support::redact;

/// Maximum length of a preview in characters.
const PREVIEW_CHARS: usize = 150;

/// Length in bytes from which a word with digits is taken for a key.
const MIN_KEY_BYTES: usize = 20;

/// Returns the beginning of `text` with everything that looks like a key redacted.
pub(super) fn preview(text: &str) -> String {
    let is_key = |word: &str| word.len() >= MIN_KEY_BYTES && word.bytes().any(|byte| byte.is_ascii_digit());
    // More than the preview is redacted, because redaction shortens the text and a cut word could be the beginning of a
    // key; and not all of it, because texts may be megabytes long.
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
