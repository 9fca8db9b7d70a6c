//! Arguments that do not fit, in words that a model can act on.

use std::fmt;

use crate::ToolName;
use crate::tool::ToolError;

/// Why arguments were refused: what was wrong, and what was expected.
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

    /// What was wrong, the first few things.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// As what the model reads.
    pub fn into_tool_error(self, tool: &ToolName) -> ToolError {
        ToolError::invalid_arguments(format!("invalid arguments for `{tool}`:\n{self}")).with_source(self)
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

/// A text from the arguments or the schema, short enough and plain enough to stand in a message.
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

/// The known name that was probably meant by `given`.
pub(super) fn did_you_mean<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    let allowed = given.chars().count() / 3;
    known
        .map(|name| (distance(&given, &name.to_lowercase(), allowed), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// How many characters must be added, removed or replaced; a number above `limit` when it is surely more.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let b: Vec<char> = b.chars().collect();
    let length = a.chars().count();
    if length.abs_diff(b.len()) > limit || length > 64 {
        return limit + 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
