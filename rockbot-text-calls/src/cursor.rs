//! A forward cursor with a budget for the bytes that it looks at.
//!
//! A hostile text could make every attempt to parse a call look at all the text that follows. So
//! a cursor has fuel for a fixed number of looks at each byte: when it is spent nothing more is
//! found, and the text stays text.

/// Number of looks at each byte before the text counts as hostile. A genuine call needs three or
/// four.
const LOOKS_PER_BYTE: usize = 16;

/// The error of a text that cannot be parsed, not even after a repair, or whose budget is
/// exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    /// Byte offset, always at a character boundary.
    pub(super) at: usize,
    /// Tokens that end the current payload, besides the end of the text.
    pub(super) closes: &'static [&'static str],
    /// Number of brackets that the last object lacked because the text ended, without a token that
    /// closes the payload.
    pub(super) cut: usize,
    fuel: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            closes: &[],
            cut: 0,
            fuel: text.len().saturating_mul(LOOKS_PER_BYTE).saturating_add(4096),
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns at most `length` bytes of the rest, up to a character boundary.
    pub(super) fn head(&self, length: usize) -> &'a str {
        let rest = self.rest();
        &rest[..rest.floor_char_boundary(length)]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn is_spent(&self) -> bool {
        self.fuel == 0
    }

    /// Consumes fuel for `looks` bytes.
    pub(super) fn spend(&mut self, looks: usize) -> Result<(), Unreadable> {
        self.fuel = self.fuel.saturating_sub(looks);
        if self.fuel == 0 { Err(Unreadable) } else { Ok(()) }
    }

    /// Moves over `token`, in any case of its letters, if it stands here.
    pub(super) fn eat(&mut self, token: &str) -> bool {
        let here = starts_with(self.rest(), token);
        if here {
            self.at += token.len();
        }
        here
    }

    pub(super) fn eat_any(&mut self, tokens: &[&str]) -> bool {
        tokens.iter().any(|token| self.eat(token))
    }

    pub(super) fn space(&mut self) {
        let rest = self.rest();
        let skipped = rest.len() - rest.trim_start().len();
        self.at += skipped;
        self.fuel = self.fuel.saturating_sub(skipped + 1);
    }

    /// Returns the text up to the end of the line. The cursor stays.
    pub(super) fn line(&mut self) -> &'a str {
        let rest = self.rest();
        let line = if self.is_spent() {
            ""
        } else {
            &rest[..rest.find('\n').unwrap_or(rest.len())]
        };
        self.fuel = self.fuel.saturating_sub(line.len() + 1);
        line
    }

    /// Moves over spaces and tabs.
    pub(super) fn blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    /// Returns the offset of the next `token`.
    pub(super) fn find(&mut self, token: &str) -> Option<usize> {
        let found = self.rest().find(token);
        self.spend(found.unwrap_or(self.rest().len()) + 1).ok()?;
        Some(self.at + found?)
    }

    /// Returns `true` at the end of the payload.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest().is_empty() || self.closes.iter().any(|close| starts_with(self.rest(), close))
    }

    /// Moves to where the payload ends: at its next closing token, else at the end of the text.
    pub(super) fn skip_to_end(&mut self) {
        let closes = self.closes;
        let found = closes.iter().filter_map(|close| self.find(close)).min();
        self.at = found.unwrap_or(self.text.len());
    }

    /// Moves over a tool's name as models write them, with dots and colons; empty when there is none.
    pub(super) fn name(&mut self) -> &'a str {
        let name = name_at(self.rest());
        self.at += name.len();
        name
    }
}

/// Returns the tool's name at the start of `text`, of at most 128 bytes; empty when there is none.
pub(super) fn name_at(text: &str) -> &str {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/');
    &text[..text.bytes().take(128).take_while(part).count()]
}

/// Returns `true` if `text` starts with `prefix`, ignoring ASCII case.
pub(super) fn starts_with(text: &str, prefix: &str) -> bool {
    let start = text.as_bytes().get(..prefix.len());
    start.is_some_and(|start| {
        let same_first =
            start.first().map(u8::to_ascii_lowercase) == prefix.bytes().next().map(|b| b.to_ascii_lowercase());
        same_first && start.eq_ignore_ascii_case(prefix.as_bytes())
    })
}
