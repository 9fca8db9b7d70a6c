//! The types of JSON Schema, and how its values compare.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::error::shorten;

/// The JSON Schema type of a value. An integer is also a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    Null,
}

impl Kind {
    pub(super) const ALL: [Self; 7] = [
        Self::Object,
        Self::Array,
        Self::String,
        Self::Integer,
        Self::Number,
        Self::Boolean,
        Self::Null,
    ];

    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Object(_) => Self::Object,
            Value::Array(_) => Self::Array,
            Value::String(_) => Self::String,
            // `1.0` is an integer in JSON Schema.
            Value::Number(number) if number.as_f64().is_none_or(|float| float.fract() == 0.0) => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::Bool(_) => Self::Boolean,
            Value::Null => Self::Null,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        }
    }

    pub(super) fn with_article(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Null => "null",
        }
    }
}

/// A set of types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) fn add(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u8;
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    pub(super) fn accepts(self, kind: Kind) -> bool {
        self.has(kind) || (kind == Kind::Integer && self.has(Kind::Number))
    }

    fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// Describes a value for a message: scalars as they are, other values by their type.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string \"{}\"", shorten(text, 40)),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => Kind::of(value).with_article().to_owned(),
    }
}

/// Returns `true` if two values are equal by the rules of JSON Schema, where `1` equals `1.0`.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            let equal_in_b = |(name, a): (&String, &Value)| b.get(name).is_some_and(|b| same(a, b));
            a.len() == b.len() && a.iter().all(equal_in_b)
        }
        _ => a == b,
    }
}

/// Compares two numbers: exactly if both are integers, otherwise as floating point.
pub(super) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Returns the number of values that a value consists of, itself included.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
