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
            match character.is_control() {
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

impl fmt::Debug for Loggable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
