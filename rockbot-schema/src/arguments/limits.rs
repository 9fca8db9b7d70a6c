//! The keywords of a schema that constrain more than the Rust type it was made from.

use serde_json::{Map, Value};

/// Keywords that no type implies. Where one does, such as the length of a tuple, validating it
/// twice does no harm.
const BEYOND_TYPES: [&str; 12] = [
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
    "multipleOf",
    "not",
    "uniqueItems",
];

/// Returns `true` if a subschema with these keywords may refuse values that its Rust type accepts.
pub(super) fn adds_to_types(members: &Map<String, Value>) -> bool {
    let (min, max) = limits_of(members.get("format").and_then(Value::as_str));
    let is_beyond = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "minimum" => min.is_none() || value.as_i64() != min,
        "maximum" => max.is_none() || value.as_i64() != max,
        keyword => BEYOND_TYPES.contains(&keyword),
    };
    members.iter().any(is_beyond)
}

/// Returns the limits that a schema has because of an integer type alone.
fn limits_of(format: Option<&str>) -> (Option<i64>, Option<i64>) {
    match format {
        Some("int8") => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        Some("int16") => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        Some("uint8") => (Some(0), Some(u8::MAX.into())),
        Some("uint16") => (Some(0), Some(u16::MAX.into())),
        Some("uint" | "uint32" | "uint64" | "uint128") => (Some(0), None),
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use crate::{ArgumentSchema, schema_of};

    fn check<T: JsonSchema>(adds: bool) {
        let schema = ArgumentSchema::compile(&schema_of::<T>()).unwrap();
        assert_eq!(schema.adds_to_types(), adds, "{}", schema.signature());
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        flag: bool,
        map: std::collections::BTreeMap<String, Vec<i32>>,
    }

    #[test]
    fn a_plain_type_adds_nothing() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Plain {
            small: Vec<u8>,
            short: Option<u16>,
            signed: i8,
            long: i16,
            size: usize,
            wide: u128,
            ratio: f64,
            inner: Option<Inner>,
        }
        check::<Plain>(false);
    }

    #[test]
    fn limits_of_the_authors_own_add_something() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Range {
            #[schemars(range(min = 1, max = 5))]
            count: u8,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Deep {
            list: Vec<Option<Length>>,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Length {
            #[schemars(length(min = 1))]
            text: String,
        }
        check::<Range>(true);
        check::<Deep>(true);
    }
}
