//! Bytes in JSON, for `#[serde(with)]`: text in standard base64 with padding.

use std::borrow::Cow;

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    STANDARD.decode(&*text).map(Bytes::from).map_err(de::Error::custom)
}
