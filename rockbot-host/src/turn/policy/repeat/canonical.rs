//! Digests of calls and results without the differences that do not count.
//!
//! Every call of every turn is digested, so JSON is folded into its digest while it is parsed,
//! without a value in between.

use std::fmt;
use std::hash::{Hash, Hasher};

use rockbot_core::support::FoldHasher;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Number of bytes of a result that are compared. Results that differ do so early.
const COMPARED_BYTES: usize = 500;

/// Limit of exact integers: beyond it different integers may be equal as floating-point numbers.
const MAX_EXACT: f64 = 9e15;

/// The digest of a JSON value: white space, the order of keys, members that are null, the form of
/// numbers and punctuation at the end of texts do not count.
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
        let mut hasher = FoldHasher::default();
        Kind::Text.hash(&mut hasher);
        text.split_ascii_whitespace().for_each(|word| word.hash(&mut hasher));
        Ok(hasher.finish())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut hasher = FoldHasher::default();
        Kind::Array.hash(&mut hasher);
        while let Some(Canonical(item)) = items.next_element()? {
            item.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        // A sum does not depend on the order.
        let mut sum = 0_u64;
        let null = digest(&Kind::Null);
        while let Some(Key(key)) = members.next_key()? {
            let Canonical(value) = members.next_value()?;
            // An argument that is not given and an argument that is null are the same.
            if value != null {
                sum = sum.wrapping_add(digest(&(key, value)));
            }
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

/// Returns the digest of the beginning of a result without the parts that differ in each call:
/// runs of digits (times, counters) and long hexadecimal ids count as one mark.
pub(super) fn digest_of_result(content: &str) -> u64 {
    let mut rest = &content.as_bytes()[..content.floor_char_boundary(COMPARED_BYTES)];
    let mut hasher = FoldHasher::default();
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
    let mut hasher = FoldHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}
