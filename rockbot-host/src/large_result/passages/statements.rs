//! Statements of a text: what says one thing, by itself.

use super::windows::{word_end, word_start};

/// Maximum length of a statement, in bytes. What is longer, which may be all of a file, is ranked in parts.
const MAX_LEN: usize = 250;

/// Returns the statements of `text`: its lines, the sentences and objects in them, and the members of one object together.
/// Long ones are cut into parts that overlap by half.
pub(super) fn statements_of(text: &str) -> impl Iterator<Item = &str> {
    groups_of(text).flat_map(sentences_of).flat_map(parts_of)
}

/// Returns the lines of a text, where neighbouring lines of members of a JSON object are one.
fn groups_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = line_end(rest);
        if is_member(&rest[..end]) {
            while end < rest.len() && is_member(&rest[end..end + line_end(&rest[end..])]) {
                end += line_end(&rest[end..]);
            }
        }
        let (group, others) = rest.split_at(end);
        rest = others;
        (!group.is_empty()).then_some(group)
    })
}

/// Returns the end of the first line, behind its break.
fn line_end(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |at| at + 1)
}

fn is_member(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('"') && line.contains("\": ")
}

/// Returns the sentences of a line of prose, or the objects of a long line of JSON.
fn sentences_of(line: &str) -> impl Iterator<Item = &str> {
    const ENDS: [&str; 4] = [". ", "? ", "! ", "}, "];
    let mut rest = line;
    std::iter::from_fn(move || {
        let ends = ENDS.iter().filter_map(|end| Some(rest.find(end)? + end.len()));
        let (sentence, others) = rest.split_at(ends.min().unwrap_or(rest.len()));
        rest = others;
        (!sentence.is_empty()).then_some(sentence)
    })
}

fn parts_of(statement: &str) -> impl Iterator<Item = &str> {
    let (step, length) = match statement.len() <= MAX_LEN {
        true => (statement.len().max(1), statement.len()),
        false => (MAX_LEN / 3, MAX_LEN * 2 / 3),
    };
    (0..statement.len()).step_by(step).map(move |at| {
        let start = word_start(statement, statement.floor_char_boundary(at));
        let end = word_end(
            statement,
            statement.ceil_char_boundary((at + length).min(statement.len())),
        );
        &statement[start..end]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let statements: Vec<_> = statements_of(text)
            .map(str::trim)
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
        check("", &[]);
    }

    #[test]
    fn long_ones_are_cut_between_words_and_nothing_is_lost() {
        let text: String = (0..200).map(|number| format!("straße{number} ")).collect();
        let parts: Vec<_> = statements_of(&text).collect();
        for word in text.split_whitespace() {
            assert!(
                parts.iter().any(|part| part.split_whitespace().any(|own| own == word)),
                "{word}"
            );
        }
        assert!(parts.iter().all(|part| part.len() <= MAX_LEN));
    }
}
