//! Defusing text of others before a model reads it: no hidden characters, no tokens of chat
//! templates, no line that looks like the host's own.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// Indentation of text of others on lines of its own: deeper than any list or heading of the host.
const INDENT: &str = "    ";

/// Maximum length of the name of a tag or token, in characters.
const MAX_TOKEN: usize = 40;

/// Returns `text` without characters that a model may take for something else than text.
///
/// Text of others cannot hide anything, or end the frame that it stands in:
///
/// - characters that are not shown (zero-width, tag and control characters, variation selectors,
///   controls of bidirectional text) are removed; line breaks and tabs stay;
/// - the `<` of tags and of the special tokens of chat templates, such as `<|im_start|>`, becomes
///   `‹`, and the brackets of tokens such as `[INST]` become parentheses.
///
/// The result is never longer than twice the text, and defusing it once more changes nothing. No
/// filter makes text of others safe to obey: its [label](crate::trust::Label) is for that.
///
/// ```
/// use rockbot_core::support::defused;
///
/// assert_eq!(defused("a < b, done"), "a < b, done");
/// assert_eq!(defused("x<\u{200b}|im_start|>system [/INST]"), "x‹|im_start|>system (/INST)");
/// ```
pub fn defused(text: &str) -> Cow<'_, str> {
    if text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        return Cow::Borrowed(text);
    }
    let shown: Vec<char> = text.chars().filter(|&character| !is_hidden(character)).collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&character) = shown.get(at) {
        let after = &shown[at + 1..];
        match character {
            '<' | '＜' if begins_tag(after) => out.push('‹'),
            '[' => match token_len(after) {
                Some(len) => {
                    out.push('(');
                    out.extend(&after[..len]);
                    out.push(')');
                    at += len + 1;
                }
                None => out.push('['),
            },
            _ => out.push(character),
        }
        at += 1;
    }
    Cow::Owned(out)
}

/// Returns `value` with all its texts and names [defused](defused).
///
/// JSON text alone does not show everything that it hides: a control character stands in it as an
/// escape, such as `\u001b`.
///
/// ```
/// use rockbot_core::support::defused_json;
/// use serde_json::json;
///
/// assert_eq!(defused_json(&json!({"\u{1b}a": ["b\u{202e}", 1]})), json!({"a": ["b", 1]}));
/// ```
#[must_use]
pub fn defused_json(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(defused(text).into_owned()),
        Value::Array(items) => items.iter().map(defused_json).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, member)| (defused(name).into_owned(), defused_json(member)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// Returns `text` [defused](defused) and on one line: line breaks become spaces, and spaces are
/// not repeated.
///
/// ```
/// use rockbot_core::support::one_line;
///
/// assert_eq!(one_line("tea\n## Rules\r\n- obey"), "tea ## Rules - obey");
/// ```
pub fn one_line(text: &str) -> Cow<'_, str> {
    if is_plain_line(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    // Hidden characters may stand beside spaces.
    let text = defused(text);
    if is_tidy(&text) {
        return text;
    }
    let words: Vec<_> = text.split_whitespace().collect();
    Cow::Owned(words.join(" "))
}

/// Returns `text` [defused](defused), with every line indented: none of them looks like a
/// heading, an entry or a mark of the host.
///
/// ```
/// use rockbot_core::support::indented;
///
/// assert_eq!(indented("one\n## two\u{2028}- three"), "    one\n    ## two\n    - three");
/// ```
pub fn indented(text: &str) -> String {
    let mut out = String::new();
    for (at, line) in defused(text).split(breaks_line).enumerate() {
        let line = line.trim_end();
        let gap = if at > 0 { "\n" } else { "" };
        let indent = if line.is_empty() { "" } else { INDENT };
        // Writing to a string never fails.
        let _ = write!(out, "{gap}{indent}{line}");
    }
    out
}

/// Returns `true` for one line that no rule is about, as names and summaries are. Without
/// branches, so that the compiler compares many bytes at once.
fn is_plain_line(text: &[u8]) -> bool {
    let is_printable = |byte: u8| is_plain(byte) & (byte >= b' ');
    let is_spaced = |(one, next): (&u8, &u8)| (*one != b' ') | (*next != b' ');
    text.first() != Some(&b' ')
        && text.last() != Some(&b' ')
        && text.iter().fold(true, |all, &byte| all & is_printable(byte))
        && text
            .iter()
            .zip(text.iter().skip(1))
            .fold(true, |all, pair| all & is_spaced(pair))
}

/// Returns `true` for text without line breaks, tabs, repeated spaces and spaces at its ends.
fn is_tidy(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() && c != ' ') && !text.contains("  ") && text == text.trim()
}

/// Returns `true` for a byte that no rule is about.
fn is_plain(byte: u8) -> bool {
    let is_shown = byte.wrapping_sub(b' ') <= b'~' - b' ';
    (is_shown | (byte == b'\n') | (byte == b'\t') | (byte == b'\r')) & (byte != b'<') & (byte != b'[')
}

fn breaks_line(character: char) -> bool {
    matches!(character, '\n' | '\u{2028}' | '\u{2029}')
}

/// Returns `true` for a character that a reader does not see, or that changes how others are shown.
fn is_hidden(character: char) -> bool {
    let is_break = breaks_line(character) || matches!(character, '\t' | '\r');
    match character {
        _ if is_break => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => character.is_control(),
    }
}

/// Returns `true` if the characters after a `<` make it a tag or a special token.
fn begins_tag(after: &[char]) -> bool {
    let first = after.first().copied().unwrap_or(' ');
    first.is_alphabetic() || matches!(first, '|' | '｜' | '/' | '<' | '!' | '?' | '_')
}

/// Returns the length of a token in brackets, such as `/INST`, whose opening bracket stands
/// before `after`.
fn token_len(after: &[char]) -> Option<usize> {
    let end = after.iter().take(MAX_TOKEN).position(|&character| character == ']')?;
    let name = after[..end].strip_prefix(&['/']).unwrap_or(&after[..end]);
    let is_token = name.len() >= 3 && name.iter().all(|&c| c.is_ascii_uppercase() || c == '_');
    is_token.then_some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_of_chat_templates_are_no_tokens_any_more() {
        for token in [
            "<|im_start|>",
            "<|im_end|>",
            "<|eot_id|>",
            "<|start_header_id|>",
            "[INST]",
            "[/INST]",
            "[TOOL_CALLS]",
            "<<SYS>>",
            "</s>",
            "<start_of_turn>",
            "<｜User｜>",
            "<tool_call>",
            "</records 12ab>",
            "<think>",
            "＜system＞",
        ] {
            let hidden: String = token.chars().flat_map(|c| [c, '\u{200b}', '\u{e0041}']).collect();
            for text in [token, &*hidden] {
                let text = defused(text).into_owned();
                assert!(!text.contains(['<', '[', '＜']), "{text}");
            }
        }
    }

    #[test]
    fn harmless_text_stays() {
        for text in [
            "a < b and c > d",
            "[see below] [1] - [x]",
            "if a<1 { b[0] }",
            "Grüße, 你好, שלום",
            "tab\tand\nbreak",
        ] {
            assert_eq!(defused(text), text);
        }
    }

    #[test]
    fn spaces_beside_hidden_characters_are_no_spaces_at_the_end() {
        for text in ["tea \u{fe00}", "\u{200b} tea", " \u{200b} tea\u{200b}"] {
            assert_eq!(one_line(text), "tea");
        }
        assert_eq!(one_line("green \u{200b} tea"), "green tea");
    }

    proptest! {
        #[test]
        fn nothing_hidden_stays_and_defusing_again_changes_nothing(text in "(?s)([<\\[|/A-Z\\]\u{200b}\u{e0041}\n]|.){0,60}") {
            let once = defused(&text).into_owned();
            prop_assert!(!once.contains(is_hidden));
            prop_assert_eq!(defused(&once), once.clone());
            prop_assert!(once.len() <= 2 * text.len());
            let line = one_line(&text).into_owned();
            prop_assert!(!line.contains(|c: char| c.is_whitespace() && c != ' '));
            prop_assert_eq!(one_line(&line), line.clone());
            prop_assert!(indented(&text).lines().all(|line| line.is_empty() || line.starts_with(INDENT)));
        }
    }
}
