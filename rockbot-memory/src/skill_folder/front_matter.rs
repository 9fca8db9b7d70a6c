//! The front matter of a Markdown file: fields in YAML, between two lines of dashes.

use std::collections::BTreeMap;
use std::fmt::Write;

use granit_parser::{Event, Parser, ScalarStyle, StrInput};

/// The fields, by name.
pub(super) type Fields = BTreeMap<String, Value>;

/// The value of a field. Every scalar is a text, whatever its YAML type: a version `1.0` is
/// "1.0", as in the validator of the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    List(Vec<Self>),
    Map(Fields),
}

/// Splits a file into its front matter and the rest.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

/// Parses the fields. Unquoted texts with a colon are accepted, because other programs accept them.
pub(super) fn read(yaml: &str) -> Result<Fields, String> {
    read_strictly(yaml).or_else(|error| read_strictly(&with_quotes(yaml)).map_err(|_| error))
}

fn read_strictly(yaml: &str) -> Result<Fields, String> {
    let mut events = Events(Parser::new_from_str(yaml));
    match events.next()? {
        Event::MappingStart(..) => events.fields(),
        _ => Err("it has no fields such as `name: …`".to_owned()),
    }
}

/// The events of the YAML parser, which limits the nesting of collections.
struct Events<'a>(Parser<'a, StrInput<'a>>);

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<Event<'a>, String> {
        loop {
            match self.0.next() {
                // Comments are named, since any crate of a program may turn their events on.
                Some(Ok((Event::StreamStart | Event::DocumentStart(..) | Event::Comment(..), _))) => {}
                Some(Ok((event, _))) => return Ok(event),
                Some(Err(error)) => return Err(error.to_string()),
                None => return Ok(Event::StreamEnd),
            }
        }
    }

    fn fields(&mut self) -> Result<Fields, String> {
        let mut fields = Fields::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(fields),
                Event::Scalar(key, ..) => key.into_owned(),
                _ => return Err("a name of a field is no text".to_owned()),
            };
            let first = self.next()?;
            let value = self.value(first)?;
            if fields.contains_key(&key) {
                return Err(format!("the field `{}` occurs twice", shown(&key)));
            }
            fields.insert(key, value);
        }
    }

    /// Parses the value that begins with `first`.
    fn value(&mut self, first: Event<'a>) -> Result<Value, String> {
        match first {
            // The parser's notation for an empty field.
            Event::Scalar(text, ScalarStyle::Plain, ..) if text == "~" => Ok(Value::Text(String::new())),
            Event::Scalar(text, ..) => Ok(Value::Text(text.into_owned())),
            Event::MappingStart(..) => self.fields().map(Value::Map),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Ok(Value::List(list)),
                        first => list.push(self.value(first)?),
                    }
                }
            }
            // Aliases are rejected: expanding them could make a text exponentially long.
            _ => Err("references such as `*name` are not read".to_owned()),
        }
    }
}

/// Truncates a text for an error message.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Puts unquoted one-line texts that contain a colon into quotes.
fn with_quotes(yaml: &str) -> String {
    let line = |line: &str| {
        let (key, value) = line.split_once(": ")?;
        let is_key = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        let value = value.trim();
        let is_plain = !value.starts_with(['"', '\'', '|', '>', '[', '{', '&', '*', '!', '#', '%', '@', '`']);
        let is_meant = is_key && is_plain && (value.contains(": ") || value.ends_with(':'));
        is_meant.then(|| format!("{key}: {}", quoted(value)))
    };
    let lines = yaml.lines().map(|text| line(text).unwrap_or_else(|| text.to_owned()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Encodes a text as YAML.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            // YAML does not allow these characters, or treats them as line ends.
            char if char.is_control()
                || matches!(char, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                write!(quoted, "\\U{:08x}", u32::from(char)).expect("a text takes in everything");
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[track_caller]
    fn check(yaml: &str, expected: &[(&str, Value)]) {
        let expected = expected.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        assert_eq!(read(yaml), Ok(expected.collect()), "{yaml}");
    }

    #[test]
    fn scalars_are_texts_as_they_stand_there() {
        check(
            "a: 1.0\nb: yes\nc:\nd: 'x: y'",
            &[
                ("a", text("1.0")),
                ("b", text("yes")),
                ("c", text("")),
                ("d", text("x: y")),
            ],
        );
        check(
            "a: >-\n  folded\n  text\nb: |\n  kept\n  lines\n",
            &[("a", text("folded text")), ("b", text("kept\nlines\n"))],
        );
        let map = Value::Map([("k".to_owned(), Value::List(vec![text("1"), text("2")]))].into());
        check("m:\n  k: [1, '2'] # note", &[("m", map)]);
    }

    #[test]
    fn a_colon_without_quotes_is_read_as_it_is_meant() {
        check(
            "name: web\ndescription: Use this when: it is \"late\"",
            &[
                ("name", text("web")),
                ("description", text("Use this when: it is \"late\"")),
            ],
        );
    }

    #[test]
    fn what_is_no_front_matter() {
        for yaml in [
            "",
            "text",
            "- a",
            "a: &x 1\nb: *x",
            "a: *x",
            "a: 1\na: 2",
            "a: [1",
            "? [a]\n: b",
        ] {
            assert!(read(yaml).is_err(), "{yaml}");
        }
        let deep = format!("a: {}", "[".repeat(10_000));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn a_front_matter_stands_between_dashes() {
        assert_eq!(split("---\na: 1\n---\nbody"), Some(("a: 1\n", "body")));
        assert_eq!(split("\u{feff}--- \r\na: 1\r\n---\r\n"), Some(("a: 1\r\n", "")));
        assert_eq!(split("---\n---"), Some(("", "")));
        for text in [
            "",
            "a: 1",
            "---",
            "---\na: 1",
            "----\na: 1\n---\n",
            "\n---\na: 1\n---\n",
        ] {
            assert_eq!(split(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_quoted_text_is_that_text(words in "\\PC*|.*|[\\x00-\\x20\"'\\\\:#\u{85}\u{2028}\u{feff}\u{7f}-]*") {
            check(&format!("a: {}", quoted(&words)), &[("a", text(&words))]);
        }

        #[test]
        fn no_text_is_a_panic(yaml in "\\PC*|[-a: \\n\\[\\]{}&*!|>'\"%@#?,]*") {
            let _ = read(&yaml);
            let _ = split(&yaml);
        }
    }
}
