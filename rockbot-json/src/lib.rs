//! JSON on the path of a turn: the same bytes as `serde_json` writes, with a third of its
//! instructions.
//!
//! `serde_json` looks for characters to escape one by one, and a turn writes mostly texts:
//! prompts, answers, results, and the names of members. Here sixteen bytes are examined together.
//! Everything else is left to `serde_json`.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod any_case;
mod text;
mod writer;

use std::iter;

use serde::de::value::MapDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use any_case::read_any_case;
pub use text::push_text;

use writer::{JsonWriter, RAW_VALUE};

/// Bytes of most values that are written.
const USUAL_LEN: usize = 512;

/// Appends `value` to `json`, as `serde_json::to_writer` does. The bytes that were appended
/// before an error stay.
///
/// ```
/// let mut line = Vec::new();
/// rockbot_json::write(&mut line, &("naïve", [1.5], true))?;
/// assert_eq!(line, r#"["naïve",[1.5],true]"#.as_bytes());
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
///
/// Returns an error if the value cannot be written as JSON, such as a map whose keys are lists.
pub fn write<T: Serialize + ?Sized>(json: &mut Vec<u8>, value: &T) -> Result<(), serde_json::Error> {
    value.serialize(JsonWriter::new(json))
}

/// Returns `value` as JSON text, as `serde_json::value::to_raw_value` does.
///
/// # Errors
///
/// Returns an error as [`write()`] does.
pub fn to_raw_value<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, serde_json::Error> {
    let mut json = Vec::with_capacity(USUAL_LEN);
    write(&mut json, value)?;
    let json = String::from_utf8(json).map_err(serde::ser::Error::custom)?;
    // `serde_json` hands over the text of a raw value in this form: so it is neither parsed nor
    // copied once more.
    Box::deserialize(MapDeserializer::new(iter::once((RAW_VALUE, json))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Number, Value, json};

    use super::*;

    #[derive(Serialize)]
    struct Nothing;

    #[derive(Serialize)]
    struct Wrapped(u8);

    #[derive(Serialize)]
    struct Pair(Option<char>, Option<char>);

    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Kind {
        Unit,
        Wrapped(i64),
        Pair(bool, Vec<u8>),
        #[serde(rename = "na\"me")]
        Named {
            #[serde(rename = "a\nb")]
            first: u32,
            second: (),
        },
    }

    #[derive(Serialize)]
    struct All<'a> {
        kinds: Vec<Kind>,
        unit: Nothing,
        wrapped: Wrapped,
        pair: Pair,
        empty: [u8; 0],
        floats: (f32, f64, f64),
        large: (i128, u128),
        raw: &'a RawValue,
        numbers: BTreeMap<i8, &'a str>,
        flags: BTreeMap<bool, ()>,
        kind_of: BTreeMap<Kind, ()>,
        #[serde(flatten)]
        more: BTreeMap<String, Number>,
    }

    fn all(raw: &RawValue) -> All<'_> {
        All {
            kinds: vec![
                Kind::Unit,
                Kind::Wrapped(-1),
                Kind::Pair(true, vec![1, 2]),
                Kind::Named { first: 1, second: () },
            ],
            unit: Nothing,
            wrapped: Wrapped(7),
            pair: Pair(Some('"'), None),
            empty: [],
            floats: (0.1, 1e300, f64::NAN),
            large: (i128::MIN, u128::MAX),
            raw,
            numbers: [(-1, "x"), (2, "y")].into(),
            flags: [(true, ())].into(),
            kind_of: [(Kind::Unit, ())].into(),
            more: [("more".to_owned(), Number::from(3))].into(),
        }
    }

    fn check<T: Serialize + ?Sized>(value: &T) {
        let mut written = b"before ".to_vec();
        write(&mut written, value).unwrap();
        let expected = format!("before {}", serde_json::to_string(value).unwrap());
        assert_eq!(String::from_utf8(written).unwrap(), expected);
        assert_eq!(
            to_raw_value(value).unwrap().get(),
            serde_json::to_string(value).unwrap()
        );
    }

    #[test]
    fn every_kind_of_value_is_written_as_serde_json_writes_it() {
        let raw = RawValue::from_string(r#"{"a": [1,  2]}"#.to_owned()).unwrap();
        check(&all(&raw));
        check(&*raw);
        check(&json!({"a": [1, null, {"b": ["", "c\t"]}], "": {}, "d": []}));
    }

    #[test]
    fn keys_that_are_no_text_are_errors() {
        let lists = BTreeMap::from([([1, 2], 3)]);
        let maps = BTreeMap::from([(BTreeMap::from([("a", 1)]), 3)]);
        let none = BTreeMap::from([((), 3)]);
        for error in [
            to_raw_value(&lists).unwrap_err(),
            to_raw_value(&maps).unwrap_err(),
            to_raw_value(&none).unwrap_err(),
        ] {
            assert_eq!(error.to_string(), "key must be a string");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(".{0,20}", inner, 0..5).prop_map(|members| json!(members)),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_is_written_as_serde_json_writes_it(value in value()) {
            check(&value);
        }
    }
}
