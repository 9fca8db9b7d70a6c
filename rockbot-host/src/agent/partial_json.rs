//! A tolerant reader of JSON that is still being written.

use serde_json::Value;

/// Returns the value of the first JSON object in `text`, which may be cut anywhere.
///
/// Open strings, lists and objects are closed where the text ends. The uncertain end is left out:
/// a key without its value, a number that may have more digits, half a literal, half an escape.
/// Words and fences around the object are skipped. Returns `None` before the object begins, and
/// if it is malformed or nested too deeply.
pub(super) fn complete(text: &str) -> Option<Value> {
    let text = &text[text.find('{')?..];
    let mut scan = Scan::default();
    for (at, byte) in text.bytes().enumerate() {
        scan.step(at, byte);
        if scan.closers.is_empty() {
            return serde_json::from_str(&text[..=at]).ok();
        }
    }
    serde_json::from_str(&scan.closed(text)).ok()
}

/// The state of reading a cut text, byte by byte.
#[derive(Default)]
struct Scan {
    /// Closing brackets of the open lists and objects, the outermost first.
    closers: Vec<u8>,
    /// Length of the text up to the last place where the open brackets can be closed.
    certain: usize,
    /// `true` if the next string of an object is a key.
    expects_key: bool,
    string: Option<OpenString>,
    /// `true` within a number or a literal.
    in_scalar: bool,
}

/// A string whose end is not read yet.
struct OpenString {
    is_key: bool,
    /// Beginning of the escape that is being read.
    escape: Option<usize>,
}

impl Scan {
    fn step(&mut self, at: usize, byte: u8) {
        if self.string.is_some() {
            return self.step_in_string(at, byte);
        }
        if self.in_scalar && matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
            self.in_scalar = false;
            self.certain = at;
        }
        match byte {
            b'{' | b'[' => {
                self.closers.push(if byte == b'{' { b'}' } else { b']' });
                self.expects_key = byte == b'{';
                self.certain = at + 1;
            }
            b'}' | b']' => {
                self.closers.pop();
                self.expects_key = false;
                self.certain = at + 1;
            }
            b',' => self.expects_key = self.closers.last() == Some(&b'}'),
            b':' => self.expects_key = false,
            b'"' => {
                self.string = Some(OpenString {
                    is_key: self.expects_key,
                    escape: None,
                });
            }
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => self.in_scalar = true,
        }
    }

    fn step_in_string(&mut self, at: usize, byte: u8) {
        let Some(string) = &mut self.string else { return };
        match (string.escape, byte) {
            // `\uXXXX` takes four more bytes, any other escape one.
            (Some(begin), b'u') if at == begin + 1 => {}
            (Some(begin), _) if at == begin + 1 || at == begin + 5 => string.escape = None,
            (Some(_), _) => {}
            (None, b'\\') => string.escape = Some(at),
            (None, b'"') => {
                if !string.is_key {
                    self.certain = at + 1;
                }
                self.string = None;
            }
            (None, _) => {}
        }
    }

    /// Returns the certain part of `text`, and closes everything that is open there.
    fn closed(&self, text: &str) -> String {
        let mut closed = match &self.string {
            Some(OpenString { is_key: false, escape }) => {
                let mut open = text[..escape.unwrap_or(text.len())].to_owned();
                open.push('"');
                open
            }
            _ => text[..self.certain].to_owned(),
        };
        closed.extend(self.closers.iter().rev().map(|&closer| char::from(closer)));
        closed
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::Mutations;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(complete(text), Some(expected), "{text}");
    }

    #[test]
    fn what_is_open_is_closed_and_what_is_uncertain_is_left_out() {
        check("{", json!({}));
        check(r#"{"na"#, json!({}));
        check(r#"{"name""#, json!({}));
        check(r#"{"name": "#, json!({}));
        check(r#"{"name": "An"#, json!({"name": "An"}));
        check(r#"{"name": "Ann","#, json!({"name": "Ann"}));
        check(r#"{"age": 4"#, json!({}));
        check(r#"{"age": 42,"#, json!({"age": 42}));
        check(r#"{"age": 42 "#, json!({"age": 42}));
        check(r#"{"old": tru"#, json!({}));
        check(r#"{"old": true}"#, json!({"old": true}));
        check(r#"{"list": [1, 2"#, json!({"list": [1]}));
        check(r#"{"list": ["a", {"b": nul"#, json!({"list": ["a", {}]}));
        check(r#"{"list": [[], ["x"#, json!({"list": [[], ["x"]]}));
    }

    #[test]
    fn half_an_escape_waits_for_the_rest() {
        check(r#"{"a": "1\"#, json!({"a": "1"}));
        check(r#"{"a": "1\n"#, json!({"a": "1\n"}));
        check(r#"{"a": "1\u00"#, json!({"a": "1"}));
        check(r#"{"a": "1\u00e4"#, json!({"a": "1ä"}));
        check(r#"{"a": "\\\"{"#, json!({"a": "\\\"{"}));
    }

    #[test]
    fn words_and_fences_around_it_are_skipped() {
        check("Here it is:\n```json\n{\"a\": [true, \"b", json!({"a": [true, "b"]}));
        check("{\"a\": 1}\n```\nDone. {", json!({"a": 1}));
    }

    #[test]
    fn what_is_no_json_is_no_value() {
        for text in ["", "no", "{]", "{1: 2}", r#"{"a" "b"}"#, &"{\"a\":".repeat(500)] {
            assert_eq!(complete(text), None, "{text}");
        }
    }

    #[test]
    fn every_prefix_of_an_answer_is_read_and_only_grows() {
        let whole = json!({"name": "A\"n\\n ü€", "list": [1, -2.5e3, {"deep": [null, true, "x"]}], "n": 0});
        let text = whole.to_string();
        let ends = (1..=text.len()).filter(|end| text.is_char_boundary(*end));
        let sizes: Vec<_> = ends
            .map(|end| complete(&text[..end]).expect("a prefix is read").to_string().len())
            .collect();
        assert!(sizes.is_sorted(), "{sizes:?}");
        check(&text, whole);
    }

    #[test]
    fn broken_texts_are_no_surprise() {
        let corpus = [
            r#"Here: {"name": "cat", "lives": [9, 8.5, true, null], "deep": {"a": "\u00e9\n"}} done"#,
            "```json\n{\"a\": [[{}]]}\n```",
        ];
        Mutations::of(corpus).check_text(|text| {
            if let Some(value) = complete(text) {
                assert!(value.is_object());
                assert!(value.to_string().len() <= 30 * text.len() + 10);
            }
        });
    }
}
