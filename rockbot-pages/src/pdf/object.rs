//! The values that a PDF is made of.

use std::collections::BTreeMap;

/// A dictionary. The bytes of a name are characters of Latin-1, so that different names stay
/// different.
pub(super) type Dict = BTreeMap<String, Object>;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    Number(f64),
    Name(String),
    Text(Vec<u8>),
    Array(Vec<Self>),
    Dict(Dict),
    /// The number of an object. Its generation is not needed: the newest object of a number counts.
    Reference(u32),
    /// Any other word: `true`, `null`, an operator.
    Word(String),
}

impl Object {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a number that is neither negative nor a fraction.
    pub(super) fn natural(&self) -> Option<usize> {
        let number = self.number()?;
        (number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0).then_some(number as usize)
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) => Some(dict),
            _ => None,
        }
    }

    pub(super) fn reference(&self) -> Option<u32> {
        match self {
            Self::Reference(id) => Some(*id),
            _ => None,
        }
    }
}

/// Returns `true` if the dictionary says that it is of this type.
pub(super) fn is_of_type(dict: &Dict, name: &str) -> bool {
    dict.get("Type").and_then(Object::name) == Some(name)
}
