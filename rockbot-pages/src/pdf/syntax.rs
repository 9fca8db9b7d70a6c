//! The syntax of PDF, which its content streams, character maps and Type 1 fonts share.

use super::budget::Budget;
use super::object::{Dict, Object};

/// Maximum depth of arrays and dictionaries.
const MAX_DEPTH: usize = 64;

/// Maximum number of values in one object, and between two operators.
const MAX_NODES: usize = 1 << 18;

/// A reader of values. It pays for every byte, and ends where the budget does.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    budget: &'a Budget,
    nodes: usize,
}

/// A piece of text between two places where a value may begin.
enum Token {
    Value(Object),
    Array,
    Dict,
    Close,
}

impl<'a> Lexer<'a> {
    /// Creates a reader that begins at the place `at`.
    pub(super) fn new(bytes: &'a [u8], at: usize, budget: &'a Budget) -> Self {
        let at = at.min(bytes.len());
        Self {
            bytes,
            at,
            budget,
            nodes: MAX_NODES,
        }
    }

    /// Returns the place behind the tokens that were read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Reads a value. Returns `None` at the end, and at a value that is nested too deeply or too large.
    pub(super) fn object(&mut self) -> Option<Object> {
        let token = self.token()?;
        let object = self.value(token, MAX_DEPTH)?;
        if matches!(object, Object::Word(_)) {
            self.nodes = MAX_NODES;
        }
        Some(object)
    }

    /// Skips the data of an inline image, up to its `EI`.
    pub(super) fn skip_image(&mut self) {
        let rest = &self.bytes[self.at..];
        let is_end = |window: &[u8]| is_space(window[0]) && &window[1..3] == b"EI" && is_space(window[3]);
        let length = rest.windows(4).position(is_end).map_or(rest.len(), |found| found + 3);
        self.budget.spend(length);
        self.at += length;
    }

    fn value(&mut self, token: Token, depth: usize) -> Option<Object> {
        self.nodes = self.nodes.checked_sub(1)?;
        match token {
            Token::Value(object) => Some(object),
            Token::Array => self.items(depth.checked_sub(1)?).map(Object::Array),
            Token::Dict => self
                .items(depth.checked_sub(1)?)
                .map(|items| Object::Dict(pairs(items))),
            Token::Close => Some(Object::Word(String::new())),
        }
    }

    fn items(&mut self, depth: usize) -> Option<Vec<Object>> {
        let mut items = Vec::new();
        loop {
            let before = self.at;
            let Some(token) = self.token() else { return Some(items) };
            match token {
                Token::Close => return Some(items),
                // The end of the object ends all values that were not closed in it.
                Token::Value(Object::Word(word)) if word == "endobj" => {
                    self.at = before;
                    return Some(items);
                }
                Token::Value(Object::Word(word)) if word == "R" => refer(&mut items),
                token => items.push(self.value(token, depth)?),
            }
        }
    }

    /// Reads a token. Returns `None` at the end, of the bytes or of the budget.
    fn token(&mut self) -> Option<Token> {
        let start = self.at;
        self.skip_space();
        let first = *self.bytes.get(self.at)?;
        let second = self.bytes.get(self.at + 1).copied();
        self.at += 1;
        let token = match (first, second) {
            (b'[', _) => Token::Array,
            (b'<', Some(b'<')) => {
                self.at += 1;
                Token::Dict
            }
            (b'>', Some(b'>')) => {
                self.at += 1;
                Token::Close
            }
            (b']' | b'>', _) => Token::Close,
            (b'<', _) => Token::Value(Object::Text(self.hexadecimal())),
            (b'(', _) => Token::Value(Object::Text(self.literal())),
            (b'/', _) => Token::Value(Object::Name(self.name())),
            (b'{' | b'}' | b')', _) => Token::Value(Object::Word(char::from(first).into())),
            _ => Token::Value(number_or_word(self.regular(self.at - 1))),
        };
        self.budget.spend(self.at - start).then_some(token)
    }

    fn skip_space(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'%' => {
                    let rest = &self.bytes[self.at..];
                    let length = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
                    self.at += length.unwrap_or(rest.len());
                }
                byte if is_space(byte) => self.at += 1,
                _ => return,
            }
        }
    }

    /// Reads on to the end of a run of regular characters, and returns it from `start`.
    fn regular(&mut self, start: usize) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|&byte| !is_regular(byte)).unwrap_or(rest.len());
        &self.bytes[start..self.at]
    }

    fn name(&mut self) -> String {
        let run = self.regular(self.at);
        let mut name = String::with_capacity(run.len());
        let mut at = 0;
        while let Some(&byte) = run.get(at) {
            let escaped = run.get(at + 1..at + 3).filter(|_| byte == b'#');
            let escaped = escaped.and_then(|digits| Some(16 * digit(digits[0])? + digit(digits[1])?));
            name.push(char::from(escaped.unwrap_or(byte)));
            at += if escaped.is_some() { 3 } else { 1 };
        }
        name
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == b'>').unwrap_or(rest.len());
        self.at = (self.at + length + 1).min(self.bytes.len());
        let digits: Vec<u8> = rest[..length].iter().filter_map(|byte| digit(*byte)).collect();
        let byte = |pair: &[u8]| 16 * pair[0] + pair.get(1).copied().unwrap_or(0);
        digits.chunks(2).map(byte).collect()
    }

    fn literal(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut depth = 0_usize;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => text.extend(self.escape()),
                b')' if depth == 0 => break,
                _ => {
                    depth = depth + usize::from(byte == b'(') - usize::from(byte == b')');
                    text.push(byte);
                }
            }
        }
        text
    }

    fn escape(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        match byte {
            b'n' => Some(b'\n'),
            b'r' => Some(b'\r'),
            b't' => Some(b'\t'),
            b'b' => Some(8),
            b'f' => Some(12),
            b'\r' => {
                self.at += usize::from(self.bytes.get(self.at) == Some(&b'\n'));
                None
            }
            b'\n' => None,
            b'0'..=b'7' => {
                let more = self.bytes[self.at..]
                    .iter()
                    .take(2)
                    .take_while(|byte| matches!(byte, b'0'..=b'7'));
                let more: Vec<u8> = more.copied().collect();
                self.at += more.len();
                let value = more.iter().fold(byte - b'0', |value, digit| {
                    value.wrapping_mul(8).wrapping_add(digit - b'0')
                });
                Some(value)
            }
            byte => Some(byte),
        }
    }
}

/// Replaces the two numbers at the end by the reference that they are.
fn refer(items: &mut Vec<Object>) {
    let [.., id, Object::Number(_)] = items.as_slice() else {
        return;
    };
    if let Some(id) = id.natural() {
        items.truncate(items.len() - 2);
        items.push(Object::Reference(id as u32));
    }
}

fn pairs(items: Vec<Object>) -> Dict {
    let mut dict = Dict::new();
    let mut items = items.into_iter();
    while let Some(key) = items.next() {
        // A value without a key is dropped, and the keys behind it keep their values.
        if let Object::Name(key) = key {
            dict.extend(items.next().map(|value| (key, value)));
        }
    }
    dict
}

fn number_or_word(run: &[u8]) -> Object {
    let text: String = run.iter().copied().map(char::from).collect();
    let is_number = run.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.'));
    match text.parse().ok().filter(|_| is_number) {
        Some(number) => Object::Number(number),
        None => Object::Word(text),
    }
}

/// Returns the value of a hexadecimal digit.
pub(super) fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|value| value as u8)
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\0' | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte)
        && !matches!(
            byte,
            b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%'
        )
}
