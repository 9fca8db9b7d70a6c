//! Strict parsing of arguments. An object with a member twice is refused, because it is ambiguous which of the two
//! the model meant.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::error::shorten;

/// Parses the arguments. The second pass is needed because `serde_json::Value` silently keeps the last of two members.
pub(in crate::tool) fn parse(arguments: &str) -> Result<Value, String> {
    let invalid = |error: serde_json::Error| format!("the arguments are not valid JSON: {error}");
    let value = serde_json::from_str(arguments).map_err(invalid)?;
    let mut deserializer = serde_json::Deserializer::from_str(arguments);
    Unique
        .deserialize(&mut deserializer)
        .map_err(|error| error.to_string())?;
    Ok(value)
}

/// A deserializer seed that walks through any JSON, keeps nothing, and fails at the first member that stands twice in
/// an object.
#[derive(Clone, Copy)]
struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if names.contains(&name) {
                let name = shorten(&name, 64);
                return Err(A::Error::custom(format!("`{name}` is given twice: give it once")));
            }
            names.insert(name);
            members.next_value_seed(self)?;
        }
        Ok(())
    }
}
