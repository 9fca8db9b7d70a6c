//! Statements of a text: pieces that each say one thing by themselves.

use std::ops::Range;

use super::words::{word_end, word_start};
use crate::large_result::chunker::{Line, Lines};

/// Maximum length of a statement, in bytes, but for words that are kept whole. A longer
/// statement, which may be a whole file, is read in parts.
pub(super) const MAX_LEN: usize = 250;

/// Number of bytes that a part of a long statement shares with the next.
const SHARED: usize = MAX_LEN / 3;

/// Maximum length of the name of a field, in bytes.
const MAX_NAME: usize = 40;

/// A stretch of a text that says one thing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) range: Range<usize>,
    /// Level of the heading that it is, 1 to 3; 0 for all else.
    pub(super) level: u8,
}

/// Returns the statements of `text` in order: its headings, lines, the sentences and objects in
/// them, and neighbouring fields of one object together. Long statements are cut into parts that
/// overlap. Together they are the text.
pub(super) fn statements_of(text: &str) -> Vec<Statement> {
    let mut statements = Vec::new();
    for (group, level) in groups_of(text) {
        let mut start = group.start;
        while start < group.end {
            let end = start + sentence_end(&text[start..group.end]);
            push_parts(text, start..end, level, &mut statements);
            start = end;
        }
    }
    statements
}

/// Returns the lines of a text, each with its level for a heading, where neighbouring fields are
/// one.
fn groups_of(text: &str) -> impl Iterator<Item = (Range<usize>, u8)> {
    let mut lines = Lines::default();
    let mut lines = std::iter::from_fn(move || lines.next(text.as_bytes())).peekable();
    std::iter::from_fn(move || {
        let (start, mut end, line) = lines.next()?;
        let mut last = Field::of(&text[start..end]);
        while let Some(field) = &last {
            let joins = |next: Option<Field>| next.filter(|next| !next.begins_item || field.begins_item);
            let Some((_, to, _)) = lines.peek().filter(|(_, to, _)| to - start <= MAX_LEN) else {
                break;
            };
            let Some(next) = joins(Field::of(&text[end..*to])) else {
                break;
            };
            (end, last) = (*to, Some(next));
            lines.next();
        }
        let level = match line {
            Line::Heading(level) => level,
            _ => 0,
        };
        Some((start..end, level))
    })
}

/// A line that holds a field of an object: its name, and mostly its value.
struct Field {
    /// The line begins an item of a list.
    begins_item: bool,
}

impl Field {
    /// Reads `"name": value`, `name: value`, `name = value` and `- **name**: value`.
    fn of(line: &str) -> Option<Self> {
        let line = line.trim_ascii_start();
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        let field = item.unwrap_or(line);
        let name_end = field
            .bytes()
            .take(MAX_NAME + 1)
            .position(|byte| matches!(byte, b':' | b'='))?;
        let name = field[..name_end].trim_ascii_end();
        let value = &field[name_end + 1..];
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.*\"'".contains(&byte));
        (is_name && value.starts_with(|c: char| c.is_ascii_whitespace())).then_some(Self {
            begins_item: item.is_some(),
        })
    }
}

/// Returns the end of the first sentence of a line, or of the first object of a line of JSON.
fn sentence_end(line: &str) -> usize {
    let bytes = line.as_bytes();
    let ends = |at: usize| match bytes[at] {
        b'.' | b'?' | b'!' => bytes.get(at + 1) == Some(&b' '),
        b'}' => bytes.get(at + 1) == Some(&b','),
        // The last byte of `。`.
        0x82 => line.is_char_boundary(at + 1) && line[..=at].ends_with('。'),
        _ => false,
    };
    let end = (0..bytes.len()).find(|at| ends(*at));
    end.map_or(line.len(), |at| match bytes[at] {
        0x82 => at + 1,
        _ => at + 2,
    })
}

fn push_parts(text: &str, statement: Range<usize>, level: u8, statements: &mut Vec<Statement>) {
    let Range { mut start, end } = statement;
    while end - start > MAX_LEN {
        let to = word_start(text, text.floor_char_boundary(start + MAX_LEN));
        statements.push(Statement {
            range: start..to,
            level,
        });
        start = word_end(text, text.floor_char_boundary(to - SHARED)).min(to);
    }
    statements.push(Statement {
        range: start..end,
        level,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let statements = statements_of(text);
        let statements: Vec<_> = statements
            .iter()
            .map(|statement| text[statement.range.clone()].trim())
            .filter(|text| !text.is_empty())
            .collect();
        assert_eq!(statements, expected);
    }

    #[test]
    fn a_statement_is_a_sentence_a_line_or_an_object() {
        check(
            "One is here. Is two? Yes!\nThree v1.2 is 3.4",
            &["One is here.", "Is two?", "Yes!", "Three v1.2 is 3.4"],
        );
        check(
            "{\n  \"a\": 1,\n  \"b\": \"x\"\n},\n{\n  \"a\": 2\n}",
            &["{", "\"a\": 1,\n  \"b\": \"x\"", "},", "{", "\"a\": 2", "}"],
        );
        check("[{\"a\": 1}, {\"a\": 2}]", &["[{\"a\": 1},", "{\"a\": 2}]"]);
        check("[{\"a\":1},{\"a\":2}]", &["[{\"a\":1},", "{\"a\":2}]"]);
        check("一つ。二つ。", &["一つ。", "二つ。"]);
        check("", &[]);
    }

    #[test]
    fn neighbouring_fields_of_one_object_are_one_statement() {
        check(
            "- **role**: cook\n- **office**: Ulm\n\n- a point\n- another",
            &["- **role**: cook\n- **office**: Ulm", "- a point", "- another"],
        );
        check(
            "- name: a\n  port: 1\n- name: b\n  port: 2\n",
            &["- name: a\n  port: 1", "- name: b\n  port: 2"],
        );
        check(
            "max_retries = 3\ntimeout = 5\n[other]",
            &["max_retries = 3\ntimeout = 5", "[other]"],
        );
        check("10:00:01Z a: b\n10:00:02Z a: b", &["10:00:01Z a: b", "10:00:02Z a: b"]);
    }

    #[test]
    fn long_ones_are_cut_between_words_and_nothing_is_lost() {
        let text: String = (0..200).map(|number| format!("straße{number} ")).collect();
        let parts: Vec<_> = statements_of(&text).into_iter().map(|part| &text[part.range]).collect();
        for word in text.split_whitespace() {
            assert!(
                parts.iter().any(|part| part.split_whitespace().any(|own| own == word)),
                "{word}"
            );
        }
        assert!(parts.iter().all(|part| part.len() <= MAX_LEN));
        let unbroken = "ä".repeat(5_000);
        let ends = |statements: Vec<Statement>| (statements[0].range.start, statements[statements.len() - 1].range.end);
        assert_eq!(ends(statements_of(&unbroken)), (0, unbroken.len()));
    }
}
