//! Escaping and truncating untrusted text for log lines.

use std::fmt;

/// Maximum number of bytes of a text that a log line shows.
const MAX_SHOWN: usize = 500;

/// Returns `text` in a form that is safe for a log line: on one line, without control characters,
/// truncated.
///
/// Texts of models, tools, users and servers are untrusted: a line break in one forges a log
/// line, and an escape sequence recolours the operator's terminal. Control characters and
/// characters that change the reading direction are escaped as in Rust literals; a text of more
/// than 500 bytes is cut at a character boundary and its length appended. Nothing is allocated
/// until the value is formatted. Credentials are not removed: see [`redact`](super::redact).
///
/// ```
/// use rockbot_core::support::loggable;
///
/// assert_eq!(loggable("done\r\n\u{1b}[31mroot").to_string(), r"done\r\n\u{1b}[31mroot");
/// assert_eq!(loggable(&"x".repeat(501)).to_string(), format!("{}… (501 bytes)", "x".repeat(500)));
/// ```
pub fn loggable(text: &str) -> impl fmt::Display + fmt::Debug {
    Loggable(text)
}

struct Loggable<'a>(&'a str);

impl fmt::Display for Loggable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.floor_char_boundary(MAX_SHOWN)];
        for character in shown.chars() {
            if is_control(character) {
                write!(f, "{}", character.escape_default())?
            } else {
                write!(f, "{character}")?
            }
        }
        if self.0.len() > MAX_SHOWN {
            write!(f, "… ({} bytes)", self.0.len())
        } else {
            Ok(())
        }
    }
}

/// Returns `true` for characters that act on the line instead of being shown: control characters,
/// line and paragraph separators, and the controls of bidirectional text.
fn is_control(character: char) -> bool {
    let breaks_or_reorders = matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || breaks_or_reorders
}

impl fmt::Debug for Loggable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bidirectional_controls_are_escaped() {
        assert_eq!(loggable("a\u{202e}b\u{2028}").to_string(), r"a\u{202e}b\u{2028}");
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_short_line(text in "(?s).{0,600}") {
            let shown = loggable(&text).to_string();
            prop_assert!(!shown.contains(is_control));
            // Each byte of a control character becomes at most six bytes of escape.
            prop_assert!(shown.len() <= 6 * MAX_SHOWN + 40);
            if text.len() <= MAX_SHOWN && !text.contains(is_control) {
                prop_assert_eq!(shown, text);
            }
        }
    }
}
