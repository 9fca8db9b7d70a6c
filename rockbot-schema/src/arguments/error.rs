//! The error of arguments that do not match, in words that a model can act on.

use std::fmt;

/// An error of a call's arguments: the problems, and the expected shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentError {
    problems: Vec<String>,
    expected: Option<String>,
}

impl ArgumentError {
    pub(super) fn new(problem: String) -> Self {
        Self {
            problems: vec![problem],
            expected: None,
        }
    }

    pub(super) fn expecting(problems: Vec<String>, expected: String) -> Self {
        Self {
            problems,
            expected: Some(expected),
        }
    }

    /// Returns the problems, at most the first five.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "- {problem}")?;
        }
        if let Some(expected) = &self.expected {
            writeln!(f, "Expected: {expected}")?;
        }
        f.write_str("Call the tool again with corrected arguments.")
    }
}

impl std::error::Error for ArgumentError {}

/// Shortens a text from the arguments or the schema to `limit` characters and escapes control
/// characters, so that it can stand in a message.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    let mut short: String = text.chars().take(limit).flat_map(plain).collect();
    if text.chars().nth(limit).is_some() {
        short.push('…');
    }
    short
}

fn plain(c: char) -> impl Iterator<Item = char> {
    let escape = c.is_control().then(|| c.escape_default());
    let itself = escape.is_none().then_some(c);
    escape.into_iter().flatten().chain(itself)
}
