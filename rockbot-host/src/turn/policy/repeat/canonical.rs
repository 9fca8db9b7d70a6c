//! Digests of calls and results without the differences that do not count.
//!
//! Every call of every turn is digested, so JSON is folded into its digest while it is parsed, without a value in between.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Number of bytes of a result that are compared. Results that differ do so early.
const COMPARED_BYTES: usize = 500;

/// Numbers from which on different integers would be one as floating-point numbers.
const MAX_EXACT: f64 = 9e15;

/// The digest of a JSON value: white space, the order of keys, the form of numbers and punctuation at the end of texts do
/// not count.
pub(super) struct Canonical(pub(super) u64);

impl<'de> Deserialize<'de> for Canonical {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CanonicalVisitor).map(Self)
    }
}

struct CanonicalVisitor;

impl<'de> Visitor<'de> for CanonicalVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<u64, E> {
        Ok(digest(&(Kind::Bool, value)))
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(digest(&Kind::Null))
    }

    fn visit_i64<E>(self, value: i64) -> Result<u64, E> {
        Ok(number(value as f64).unwrap_or_else(|| digest(&(Kind::Number, value))))
    }

    fn visit_u64<E>(self, value: u64) -> Result<u64, E> {
        Ok(number(value as f64).unwrap_or_else(|| digest(&(Kind::Number, value))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<u64, E> {
        Ok(number(value).unwrap_or_else(|| digest(&(Kind::Number, value.to_bits()))))
    }

    fn visit_str<E>(self, text: &str) -> Result<u64, E> {
        let text = text.trim_start().trim_end_matches(is_end);
        // Models write numbers as text and as numbers in turn.
        let may_be_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.');
        if text.starts_with(may_be_number)
            && let Some(number) = text.parse().ok().and_then(number)
        {
            return Ok(number);
        }
        let mut hasher = Fold::default();
        Kind::Text.hash(&mut hasher);
        text.split_ascii_whitespace().for_each(|word| word.hash(&mut hasher));
        Ok(hasher.finish())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut hasher = Fold::default();
        Kind::Array.hash(&mut hasher);
        while let Some(Canonical(item)) = items.next_element()? {
            item.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        // A sum does not depend on the order.
        let mut sum = 0_u64;
        while let Some(Key(key)) = members.next_key()? {
            let Canonical(value) = members.next_value()?;
            sum = sum.wrapping_add(digest(&(key, value)));
        }
        Ok(digest(&(Kind::Object, sum)))
    }
}

/// The digest of a member's name.
struct Key(u64);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E>(self, name: &str) -> Result<Key, E> {
        Ok(Key(digest(name)))
    }
}

/// The kind of a value; kinds never equal each other, but for numbers in texts.
#[derive(Hash)]
enum Kind {
    Null,
    Bool,
    Number,
    Text,
    Array,
    Object,
}

fn number(number: f64) -> Option<u64> {
    // The two zeros are one number.
    (number.abs() < MAX_EXACT).then(|| digest(&(Kind::Number, (number + 0.0).to_bits(), 'f')))
}

fn is_end(character: char) -> bool {
    matches!(character, '.' | ',' | ';' | ':' | '!' | '?') || character.is_whitespace()
}

/// Returns the digest of the beginning of a result without the parts that differ in each call: runs of digits (times,
/// counters) and long hexadecimal ids count as one mark.
pub(super) fn digest_of_result(content: &str) -> u64 {
    let mut rest = &content.as_bytes()[..content.floor_char_boundary(COMPARED_BYTES)];
    let mut hasher = Fold::default();
    while let Some(first) = rest.first() {
        let is_word = first.is_ascii_alphanumeric();
        let end = rest.iter().position(|byte| byte.is_ascii_alphanumeric() != is_word);
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        let is_id = run.len() >= 8 && run.iter().all(u8::is_ascii_hexdigit);
        let run: &[u8] = if is_id || first.is_ascii_digit() { b"#" } else { run };
        run.hash(&mut hasher);
        rest = after;
    }
    hasher.finish()
}

/// Returns the digest of `value`.
pub(super) fn digest<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = Fold::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A fast hash, by multiplication. It need not resist collisions: a model that made two calls collide would only stop
/// its own turn.
#[derive(Default)]
struct Fold(u64);

impl Fold {
    fn add(&mut self, word: u64) {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.0 ^ word).wrapping_mul(u128::from(FACTOR)) ^ u128::from(word.rotate_left(32));
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(23);
    }
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
