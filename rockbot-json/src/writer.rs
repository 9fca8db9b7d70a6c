//! The serializer: texts and structure are written here, numbers by `serde_json`.
//!
//! The journal's JSON has a serializer of its own, with the same output as
//! `serde_json`, which looks for characters to escape byte by byte: that was the largest single
//! part of a turn's instructions. Tests compare both.

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;

use super::text::{push_name, push_text};

/// The name of a struct whose one field is JSON text; `serde_json` recognizes it by this name.
pub(super) const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Beginning of the names of all structs whose one field `serde_json` writes as it is: raw
/// values, and numbers of any precision.
const AS_IT_IS: &str = "$serde_json::private::";

/// A serializer of one value to the end of a buffer.
pub(super) struct JsonWriter<'a> {
    json: &'a mut Vec<u8>,
    /// `true` if a text is JSON already.
    is_raw: bool,
}

impl<'a> JsonWriter<'a> {
    /// Creates a writer that appends to `json`.
    pub(super) fn new(json: &'a mut Vec<u8>) -> Self {
        Self { json, is_raw: false }
    }

    fn begin(self, begin: u8, end: u8) -> Members<'a> {
        self.json.push(begin);
        Members {
            json: self.json,
            is_first: true,
            is_raw: false,
            is_variant: false,
            end,
        }
    }

    /// Begins the value of a variant that has one: an object with the variant's name as its only
    /// member.
    fn begin_variant(&mut self, variant: &str) {
        push_name(self.json, b"{\"", variant);
    }
}

/// Implements methods for values that are left to `serde_json`.
macro_rules! left_to_serde_json {
    ($($method:ident: $value:ty),*) => {
        $(fn $method(self, value: $value) -> Result<(), Error> {
            serde_json::to_writer(self.json, &value)
        })*
    };
}

impl<'a> Serializer for JsonWriter<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'a>;
    type SerializeTuple = Members<'a>;
    type SerializeTupleStruct = Members<'a>;
    type SerializeTupleVariant = Members<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    left_to_serde_json! {
        serialize_bool: bool, serialize_char: char, serialize_bytes: &[u8], serialize_f32: f32, serialize_f64: f64,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        if self.is_raw {
            self.json.extend_from_slice(text.as_bytes())
        } else {
            push_text(self.json, [text])
        }
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.json.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.begin_variant(variant);
        value.serialize(JsonWriter::new(self.json))?;
        self.json.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.begin(b'[', b']'))
    }

    fn serialize_tuple(self, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.begin(b'[', b']'))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.begin(b'[', b']'))
    }

    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        self.begin_variant(variant);
        Ok(self.begin(b'[', b']').of_variant())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.begin(b'{', b'}'))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'a>, Error> {
        if name.starts_with(AS_IT_IS) {
            return Ok(Members {
                json: self.json,
                is_first: true,
                is_raw: true,
                is_variant: false,
                end: 0,
            });
        }
        Ok(self.begin(b'{', b'}'))
    }

    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        self.begin_variant(variant);
        Ok(self.begin(b'{', b'}').of_variant())
    }
}

/// An array or an object whose members are being written.
pub(super) struct Members<'a> {
    json: &'a mut Vec<u8>,
    is_first: bool,
    /// `true` if the one member is JSON text, which stands for the whole.
    is_raw: bool,
    /// `true` if the value is a variant, whose object ends with it.
    is_variant: bool,
    end: u8,
}

impl Members<'_> {
    fn of_variant(mut self) -> Self {
        self.is_variant = true;
        self
    }

    #[inline]
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.json.push(b',');
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.separate();
        value.serialize(JsonWriter::new(self.json))
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        let json = &mut *self.json;
        let is_raw = self.is_raw;
        if is_raw {
            return value.serialize(JsonWriter { json, is_raw });
        }
        if std::mem::take(&mut self.is_first) {
            push_name(json, b"\"", name)
        } else {
            push_name(json, b",\"", name)
        }
        value.serialize(JsonWriter::new(json))
    }

    /// Writes the key of a map, which becomes a text if it is a number or a truth value.
    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.separate();
        let start = self.json.len();
        key.serialize(JsonWriter::new(self.json))?;
        match self.json.get(start) {
            Some(b'"') => {}
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.json.insert(start, b'"');
                self.json.push(b'"');
            }
            _ => return Err(Error::custom("key must be a string")),
        }
        self.json.push(b':');
        Ok(())
    }

    fn close(self) {
        // An object that stands for JSON text has no end.
        if !self.is_raw {
            self.json.push(self.end);
        }
        if self.is_variant {
            self.json.push(b'}');
        }
    }
}

/// Implements the traits of arrays, and the traits of objects with fixed names.
macro_rules! members {
    ($($sequence:ident::$method:ident),*; $($object:ident),*) => {
        $(impl $sequence for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        })*
        $(impl $object for Members<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
                self.member(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        })*
    };
}

members! {
    SerializeSeq::serialize_element, SerializeTuple::serialize_element, SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field;
    SerializeStruct, SerializeStructVariant
}

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(JsonWriter::new(self.json))
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}
