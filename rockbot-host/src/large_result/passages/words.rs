//! Borders of words: neither statements nor passages cut a word.

/// Maximum length of a word that is kept whole, in bytes.
pub(super) const MAX_WORD: usize = 100;

/// Returns the start of the word that `at` is inside of, or `at` if it is between words.
pub(super) fn word_start(text: &str, at: usize) -> usize {
    let least = text.floor_char_boundary(at.saturating_sub(MAX_WORD));
    if text[at..].starts_with(is_in_word) {
        text[least..at]
            .rfind(|c| !is_in_word(c))
            .map_or(at, |before| text.ceil_char_boundary(least + before + 1))
    } else {
        at
    }
}

/// Returns the end of the word that `at` is inside of, or `at` if it is between words.
pub(super) fn word_end(text: &str, at: usize) -> usize {
    let most = text.ceil_char_boundary((at + MAX_WORD).min(text.len()));
    if text[..at].ends_with(is_in_word) {
        text[at..most].find(|c| !is_in_word(c)).map_or(at, |after| at + after)
    } else {
        at
    }
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_whole_unless_they_are_too_long() {
        let text = "one straße_2, three";
        let border = text.find("ße").unwrap();
        assert_eq!(&text[word_start(text, border)..word_end(text, border)], "straße_2");
        let comma = text.find(',').unwrap() + 1;
        assert_eq!((word_start(text, comma), word_end(text, comma)), (comma, comma));
        let long = "ä".repeat(500);
        assert_eq!((word_start(&long, 500), word_end(&long, 500)), (500, 500));
    }
}
