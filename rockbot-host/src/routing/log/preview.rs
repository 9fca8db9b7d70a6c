//! Previews of texts with secrets redacted.

use rockbot_core::support::redact;

/// Maximum length of a preview in characters.
const PREVIEW_CHARS: usize = 150;

/// Minimum length in bytes of a word with digits that is taken for a key.
const MIN_KEY_BYTES: usize = 20;

/// Returns the beginning of `text` with everything that looks like a key redacted.
pub(super) fn preview(text: &str) -> String {
    // Few texts have anything like a key. Texts without a key are only cut.
    if let Some(plain) = plain_beginning(text) {
        return plain.trim_end().to_owned();
    }
    redacted_beginning(text)
}

fn redacted_beginning(text: &str) -> String {
    // More than the preview is redacted, because redaction shortens the text and a cut word could be
    // the beginning of a key; and not all of it, because texts may be megabytes long.
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

/// Returns `true` for a word, without the space after it, that is taken for a key.
fn is_key(word: &str) -> bool {
    word.len() >= MIN_KEY_BYTES && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns the first [`PREVIEW_CHARS`] of a text if they are ASCII, and nothing up to the end of
/// their last word looks like a key.
fn plain_beginning(text: &str) -> Option<&str> {
    let beginning = &text.as_bytes()[..text.len().min(PREVIEW_CHARS)];
    let rest = &text.as_bytes()[beginning.len()..];
    let word = rest.iter().take(4 * PREVIEW_CHARS).position(u8::is_ascii_whitespace);
    let end = beginning.len() + word.unwrap_or(rest.len());
    // A longer word is cut, and so may be no key any more.
    if !text.as_bytes()[..end].is_ascii() || end > 4 * PREVIEW_CHARS {
        return None;
    }
    let has_key = text[..end].split_ascii_whitespace().any(is_key);
    // The beginnings of `Bearer` and `sk-`.
    let is_mark = |part: &[u8]| matches!(part, [b'b' | b'B', b'e' | b'E', b'a' | b'A'] | [b's', b'k', b'-']);
    let has_key = has_key || text.as_bytes()[..end].windows(3).any(is_mark);
    (!has_key).then_some(&text[..beginning.len()])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_plain_beginning_is_what_redaction_leaves(text in "([a-zA-Z]{1,12}|[0-9a-z]{18,22}|bearer|Bearer|sk-[a-z]{4,6}|x=sk-abcdefgh|é|[ \n.,:=\u{b}])+") {
            if let Some(plain) = plain_beginning(&text) {
                prop_assert_eq!(plain.trim_end(), redacted_beginning(&text));
            }
        }
    }
}
