//! Strict parsing of arguments. An object with a member twice is refused, because it is ambiguous
//! which of the two the model meant.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::error::shorten;

/// Parses the arguments.
pub(crate) fn parse(arguments: &str) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_str(arguments);
    let parsed = Strict.deserialize(&mut deserializer);
    let parsed = parsed.and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| {
        if error.is_data() {
            error.to_string()
        } else {
            format!("the arguments are not valid JSON: {error}")
        }
    })
}

/// A deserializer seed of a value that fails at the first member that stands twice in an object,
/// where the deserializer of `serde_json::Value` silently keeps the last member.
#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            match all.entry(name) {
                Entry::Vacant(entry) => drop(entry.insert(members.next_value_seed(self)?)),
                Entry::Occupied(entry) => {
                    let name = shorten(entry.key(), 64);
                    return Err(A::Error::custom(format!("`{name}` is given twice: give it once")));
                }
            }
        }
        Ok(all.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn parses_as_serde_json_does(value in json()) {
            let text = value.to_string();
            prop_assert_eq!(parse(&text).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
        }

        #[test]
        fn refuses_what_serde_json_refuses(text in "[{}\\[\\],:\"a0-9.eE\\\\ -]{0,12}") {
            prop_assert_eq!(parse(&text).is_ok(), serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
        }
    }
}
