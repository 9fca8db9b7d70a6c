//! Parses JSON as models write it, and repairs it.
//!
//! Only mistakes with a single possible meaning are repaired: a trailing comma, raw line ends and
//! tabs in strings, an escaped apostrophe, Python's `True`, `False` and `None`, doubled outer
//! braces (a mistake that some chat templates teach), and closing brackets that are missing
//! before the token that closes the payload. Where the text ends without that token, the missing
//! brackets are counted ([`Cursor::cut`]): the text was cut, and more could have followed. A
//! string, a number or a member that broke off is never completed.

use std::ops::Range;

use crate::cursor::{Cursor, Unreadable, starts_with};

/// The notation of strings and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// JSON.
    Json,
    /// Python literals: single quotes and tripled ones, too.
    Python,
    /// Strings between `<|"|>` or `<escape>`, or without quotes at all; keys without quotes (Gemma 4,
    /// FunctionGemma).
    Gemma,
}

/// A member of the outermost object.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    /// Byte range of its value in the output.
    pub(super) value: Range<usize>,
    /// Byte offset of the begin of its value in the text that was parsed.
    pub(super) source: usize,
}

/// Maximum nesting depth of arguments. Recursion is bounded by it.
const MAX_DEPTH: usize = 100;
/// Quotes of Gemma 4 and of FunctionGemma. Nothing between them is escaped.
const GEMMA_QUOTES: [&str; 2] = ["<|\"|>", "<escape>"];

impl Cursor<'_> {
    /// Parses one value and appends it to `out` as JSON.
    pub(super) fn value(&mut self, style: Style, out: &mut String) -> Result<(), Unreadable> {
        self.any(style, out, 0)
    }

    /// Parses an object, appends it to `out` as JSON, and returns its members.
    pub(super) fn object(&mut self, style: Style, out: &mut String) -> Result<Vec<Member>, Unreadable> {
        let mut members = Vec::new();
        let doubled = style == Style::Json && self.rest().starts_with("{{");
        self.at += usize::from(doubled);
        self.members(style, out, 0, Some(&mut members))?;
        if doubled {
            self.space();
            self.eat("}");
        }
        Ok(members)
    }

    fn any(&mut self, style: Style, out: &mut String, depth: usize) -> Result<(), Unreadable> {
        self.space();
        self.spend(1)?;
        match self.peek().ok_or(Unreadable)? {
            _ if depth > MAX_DEPTH => Err(Unreadable),
            b'{' => self.members(style, out, depth, None),
            b'[' => self.items(style, out, depth),
            b'-' | b'0'..=b'9' => self.number(out),
            byte if byte.is_ascii_alphabetic() => self.word(style, out),
            _ => self.string(style, out),
        }
    }

    fn members(
        &mut self,
        style: Style,
        out: &mut String,
        depth: usize,
        mut found: Option<&mut Vec<Member>>,
    ) -> Result<(), Unreadable> {
        self.list("{", "}", out, |this, out| {
            let from = out.len();
            this.key(style, out)?;
            let key = found.is_some().then(|| decoded(&out[from..])).transpose()?;
            this.space();
            if !this.eat(":") {
                return Err(Unreadable);
            }
            out.push(':');
            let from = out.len();
            let source = this.at;
            this.any(style, out, depth + 1)?;
            if let (Some(found), Some(key)) = (found.as_deref_mut(), key) {
                let value = from..out.len();
                found.push(Member { key, value, source });
            }
            Ok(())
        })
    }

    fn items(&mut self, style: Style, out: &mut String, depth: usize) -> Result<(), Unreadable> {
        self.list("[", "]", out, |this, out| this.any(style, out, depth + 1))
    }

    /// Parses items between brackets, separated by commas.
    fn list(
        &mut self,
        open: &str,
        close: &str,
        out: &mut String,
        mut item: impl FnMut(&mut Self, &mut String) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        if !self.eat(open) {
            return Err(Unreadable);
        }
        out.push_str(open);
        self.space();
        let mut first = true;
        while !self.eat(close) {
            if !first {
                out.push(',');
            }
            first = false;
            item(self, out)?;
            self.space();
            let comma = self.eat(",");
            self.space();
            if !comma && !self.eat(close) {
                if !self.is_at_end() {
                    return Err(Unreadable);
                }
                self.cut += usize::from(self.rest().is_empty());
                break;
            }
            if !comma {
                break;
            }
        }
        out.push_str(close);
        Ok(())
    }

    fn key(&mut self, style: Style, out: &mut String) -> Result<(), Unreadable> {
        if style != Style::Gemma || self.peek() == Some(b'"') || self.rest().starts_with(GEMMA_QUOTES[0]) {
            return self.string(style, out);
        }
        let key = self.name_without_colon();
        if key.is_empty() {
            return Err(Unreadable);
        }
        push_string(key, out);
        Ok(())
    }

    fn name_without_colon(&mut self) -> &str {
        let rest = self.rest();
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$');
        let length = rest.bytes().take(128).take_while(part).count();
        self.at += length;
        &rest[..length]
    }

    fn number(&mut self, out: &mut String) -> Result<(), Unreadable> {
        let part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
        let length = self.rest().bytes().take_while(part).count();
        self.spend(length)?;
        let number = &self.rest()[..length];
        serde_json::from_str::<serde_json::Number>(number).map_err(|_| Unreadable)?;
        out.push_str(number);
        self.at += length;
        Ok(())
    }

    fn word(&mut self, style: Style, out: &mut String) -> Result<(), Unreadable> {
        let length = self.rest().bytes().take(8).take_while(u8::is_ascii_alphabetic).count();
        out.push_str(match &self.rest()[..length] {
            "true" | "True" => "true",
            "false" | "False" => "false",
            "null" | "None" => "null",
            _ if style == Style::Gemma => return self.bare_string(out),
            _ => return Err(Unreadable),
        });
        self.at += length;
        Ok(())
    }

    /// Parses a string whose quotes were special tokens that the server removed.
    fn bare_string(&mut self, out: &mut String) -> Result<(), Unreadable> {
        let rest = self.rest();
        let length = rest.find([',', '}', ']', '\n']).ok_or(Unreadable)?;
        self.spend(length)?;
        push_string(rest[..length].trim_end(), out);
        self.at += length;
        Ok(())
    }

    fn string(&mut self, style: Style, out: &mut String) -> Result<(), Unreadable> {
        let quotes: &[&str] = match style {
            Style::Json => &["\""],
            Style::Python => &["\"\"\"", "'''", "\"", "'"],
            Style::Gemma => &[GEMMA_QUOTES[0], GEMMA_QUOTES[1], "\""],
        };
        let quote = *quotes.iter().find(|quote| self.eat(quote)).ok_or(Unreadable)?;
        if GEMMA_QUOTES.contains(&quote) {
            let end = self.find(quote).ok_or(Unreadable)?;
            push_string(&self.text[self.at..end], out);
            self.at = end + quote.len();
            return Ok(());
        }
        out.push('"');
        while !self.eat(quote) {
            self.piece(out)?;
        }
        out.push('"');
        Ok(())
    }

    /// Reads the next piece of a string: an escape, a character that needs one, or plain text up to
    /// either.
    fn piece(&mut self, out: &mut String) -> Result<(), Unreadable> {
        let special = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\'' | b'\\');
        let plain = self.rest().bytes().take_while(|byte| !special(*byte)).count();
        self.spend(plain + 1)?;
        out.push_str(&self.rest()[..plain]);
        self.at += plain;
        match self.peek().ok_or(Unreadable)? {
            _ if plain > 0 => {}
            b'\\' => self.escape(out)?,
            byte => {
                self.at += 1;
                push_escaped(char::from(byte), out);
            }
        }
        Ok(())
    }

    fn escape(&mut self, out: &mut String) -> Result<(), Unreadable> {
        let escaped = *self.text.as_bytes().get(self.at + 1).ok_or(Unreadable)?;
        let length = if escaped == b'u' { 6 } else { 2 };
        match escaped {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => out.push_str(&self.rest()[..length]),
            b'\'' => out.push('\''),
            b'u' => {
                let digits = self.text.as_bytes().get(self.at + 2..self.at + 6).ok_or(Unreadable)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Unreadable);
                }
                out.push_str(&self.rest()[..length]);
            }
            _ => return Err(Unreadable),
        }
        self.at += length;
        Ok(())
    }
}

/// Reads an object that is all of `text`, in JSON or, if only that fits, as a Python literal.
pub(super) fn object_of(text: &str) -> Result<(String, Vec<Member>), Unreadable> {
    let mut cursor = Cursor::new(text.trim());
    let read = cursor.object_in_any_style()?;
    if cursor.rest().trim().is_empty() {
        Ok(read)
    } else {
        Err(Unreadable)
    }
}

impl Cursor<'_> {
    /// Reads an object in JSON or, if only that fits, as a Python literal. Stays where it is on
    /// failure.
    pub(super) fn object_in_any_style(&mut self) -> Result<(String, Vec<Member>), Unreadable> {
        let start = self.at;
        for style in [Style::Json, Style::Python] {
            let mut out = String::new();
            (self.at, self.cut) = (start, 0);
            if let Ok(members) = self.object(style, &mut out) {
                return Ok((out, members));
            }
        }
        self.at = start;
        Err(Unreadable)
    }
}

/// Decodes a JSON string.
pub(super) fn decoded(json: &str) -> Result<String, Unreadable> {
    serde_json::from_str(json).map_err(|_| Unreadable)
}

/// Appends `text` as a JSON string.
pub(super) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    text.chars().for_each(|char| push_escaped(char, out));
    out.push('"');
}

fn push_escaped(char: char, out: &mut String) {
    match char {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
        char => out.push(char),
    }
}

/// Returns `true` if `text` starts like an object.
pub(super) fn is_object(text: &str) -> bool {
    starts_with(text, "{")
}
