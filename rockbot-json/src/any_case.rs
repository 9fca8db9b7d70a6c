//! Reading JSON whose members are named in any case.
//!
//! Members of messages are read in any case, as .NET programs write and read them. A deserializer
//! wraps another deserializer and renames the members of structs, and nothing else: keys of maps
//! and JSON values stay as they are. A member that is named exactly costs one look through the
//! names of the struct. One member in two cases is an error.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::writer::RAW_VALUE;

/// Names of the members of a struct.
type Fields = &'static [&'static str];

/// Parses `json` as a `T`. A member of a struct that has no field of exactly its name is the field
/// that differs in the case of ASCII letters alone, as in .NET programs that read JSON without
/// regard to case.
///
/// ```
/// use rockbot_json::read_any_case;
///
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Message { session_id: String }
///
/// let message: Message = read_any_case(br#"{"SessionId":"s"}"#)?;
/// assert_eq!(message.session_id, "s");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
///
/// Returns an error if the text is no JSON of the type, and if a struct has one member twice, in
/// whatever case.
pub fn read_any_case<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(AnyCase(&mut reader))?;
    reader.end()?;
    Ok(value)
}

/// Returns the field that the member `name` is meant for.
fn field_of(fields: Fields, name: &str) -> Option<&'static str> {
    let exact = fields.iter().find(|field| **field == name);
    exact
        .or_else(|| fields.iter().find(|field| field.eq_ignore_ascii_case(name)))
        .copied()
}

/// A deserializer, seed or accessor whose nested structs are read in any case.
struct AnyCase<T>(T);

/// A visitor of a value. With fields it is the visitor of a struct, whose members are renamed.
struct Nested<V> {
    visitor: V,
    fields: Fields,
}

impl<V> Nested<V> {
    fn new(visitor: V) -> Self {
        Self { visitor, fields: &[] }
    }
}

macro_rules! forward_deserialize {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Nested::new(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for AnyCase<D> {
    type Error = D::Error;

    forward_deserialize! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option
        deserialize_unit deserialize_seq deserialize_map deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Nested::new(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        // Raw JSON is copied as it is.
        if name == RAW_VALUE {
            return self.0.deserialize_newtype_struct(name, visitor);
        }
        self.0.deserialize_newtype_struct(name, Nested::new(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, Nested::new(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, len, Nested::new(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: Fields,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Nested { visitor, fields })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: Fields,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Nested::new(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! forward_visit {
    ($($method:ident: $type:ty),*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Nested<V> {
    type Value = V::Value;

    forward_visit! {
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128, visit_u8: u8,
        visit_u16: u16, visit_u32: u32, visit_u64: u64, visit_u128: u128, visit_f32: f32, visit_f64: f64, visit_char: char,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String, visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>
    }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(AnyCase(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(AnyCase(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(AnyCase(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        let fields = self.fields;
        self.visitor.visit_map(Members { members, fields })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(AnyCase(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for AnyCase<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(AnyCase(value))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for AnyCase<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(AnyCase(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for AnyCase<A> {
    type Error = A::Error;
    type Variant = AnyCase<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, variant) = self.0.variant_seed(seed)?;
        Ok((name, AnyCase(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for AnyCase<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(AnyCase(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Nested::new(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: Fields, visitor: V) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Nested { visitor, fields })
    }
}

/// The members of an object. The members of a struct are renamed to its fields.
struct Members<A> {
    members: A,
    fields: Fields,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        if self.fields.is_empty() {
            return self.members.next_key_seed(seed);
        }
        let fields = self.fields;
        self.members.next_key_seed(Name { inner: seed, fields })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.members.next_value_seed(AnyCase(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.members.size_hint()
    }
}

/// The seed, deserializer or visitor of a member's name.
struct Name<T> {
    inner: T,
    fields: Fields,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Name<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let fields = self.fields;
        self.inner.deserialize(Name { inner, fields })
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Name<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let fields = self.fields;
        self.inner.deserialize_str(Name { inner: visitor, fields })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Name<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<V::Value, E> {
        self.inner.visit_str(field_of(self.fields, name).unwrap_or(name))
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<V::Value, E> {
        self.inner
            .visit_borrowed_str(field_of(self.fields, name).unwrap_or(name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Order {
        order_id: String,
        #[serde(rename = "ORDERID")]
        shouted: String,
        lines: Vec<Line>,
        first: Option<Box<Line>>,
        ship_to: Option<Place>,
        by_name: BTreeMap<String, Line>,
        extra: Value,
        pair: Option<(Line, u8)>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Line {
        unit_price: i64,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
    enum Place {
        Home { zip_code: String },
        Shop(Line),
        Nowhere,
    }

    fn line(unit_price: i64) -> Line {
        Line { unit_price }
    }

    #[test]
    fn members_at_every_depth_are_found_in_any_case() {
        let json = br#"{"OrderId": "7", "LINES": [{"UnitPrice": 1}, {"unitprice": 2}], "First": {"UNITPRICE": 3},
            "shipto": {"home": {"ZipCode": "x"}}, "ByName": {"Pen": {"UnitPrice": 4}}, "Pair": [{"UnitPrice": 5}, 6],
            "Extra": {"Kept": {"As": "It Is"}}, "Unknown": {"a": [null]}}"#;
        let expected = Order {
            order_id: "7".to_owned(),
            lines: vec![line(1), line(2)],
            first: Some(Box::new(line(3))),
            ship_to: Some(Place::Home {
                zip_code: "x".to_owned(),
            }),
            by_name: [("Pen".to_owned(), line(4))].into(),
            pair: Some((line(5), 6)),
            extra: serde_json::json!({"Kept": {"As": "It Is"}}),
            ..Order::default()
        };
        assert_eq!(read_any_case::<Order>(json).unwrap(), expected);
        assert_eq!(
            read_any_case::<[Place; 2]>(br#"[{"shop": {"UNITPRICE": 1}}, "nowhere"]"#).unwrap(),
            [Place::Shop(line(1)), Place::Nowhere]
        );
    }

    #[test]
    fn an_exact_name_goes_first_and_one_member_twice_is_an_error() {
        let both = read_any_case::<Order>(br#"{"orderId": "a", "ORDERID": "b"}"#).unwrap();
        assert_eq!((&*both.order_id, &*both.shouted), ("a", "b"));
        let twice = read_any_case::<Line>(br#"{"unitPrice": 1, "UnitPrice": 2}"#).unwrap_err();
        assert!(twice.to_string().starts_with("duplicate field `unitPrice`"), "{twice}");
    }

    #[test]
    fn raw_json_and_errors_are_those_of_serde_json() {
        let raw = read_any_case::<Box<RawValue>>(br#"{"A": [1,  2]}"#).unwrap();
        assert_eq!(raw.get(), r#"{"A": [1,  2]}"#);
        for json in [&b"{\"unitPrice\": \"x\"}"[..], b"{", b"{} {}", b"[1"] {
            let own = read_any_case::<Line>(json);
            let plain = serde_json::from_slice::<Line>(json);
            assert_eq!(own.unwrap_err().to_string(), plain.unwrap_err().to_string());
        }
    }

    #[test]
    fn names_with_escapes_are_found_too() {
        assert_eq!(read_any_case::<Line>(br#"{"\u0055nitPrice": 1}"#).unwrap(), line(1));
    }
}
