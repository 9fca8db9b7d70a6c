//! Text from outside, made fit for a log line.

use std::fmt;

/// How many bytes of a text a log line shows.
const SHOWN: usize = 500;

/// `text` as a log line may show it: control characters are escaped, so that it stays one line and paints nothing,
/// and what is too long is cut.
///
/// ```
/// use rockbot_core::loggable;
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
        let shown = &self.0[..self.0.floor_char_boundary(SHOWN)];
        for character in shown.chars() {
            match paints(character) {
                true => write!(f, "{}", character.escape_default())?,
                false => write!(f, "{character}")?,
            }
        }
        match self.0.len() > SHOWN {
            true => write!(f, "… ({} bytes)", self.0.len()),
            false => Ok(()),
        }
    }
}

/// Whether a character does something to the line instead of standing in it: also those that break it or turn it
/// around.
fn paints(character: char) -> bool {
    let turns = matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
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
    fn what_turns_a_line_around_is_escaped() {
        assert_eq!(loggable("a\u{202e}b\u{2028}").to_string(), r"a\u{202e}b\u{2028}");
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_short_line(text in "(?s).{0,600}") {
            let shown = loggable(&text).to_string();
            prop_assert!(!shown.contains(paints));
            // Each byte of a control character becomes at most six.
            prop_assert!(shown.len() <= 6 * SHOWN + 40);
            if text.len() <= SHOWN && !text.contains(paints) {
                prop_assert_eq!(shown, text);
            }
        }
    }
}
