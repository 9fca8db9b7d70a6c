//! The bodies of a journal's entries: JSON that is written where it is needed.
//!
//! Records are values until a journal writes them (`RunBody`): the journal in memory never makes
//! JSON, the journal on disk writes it straight into the buffer of its append. Both parse JSON
//! when a record is read back, so that a resume sees the same whatever the journal.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::support::json;

/// The body of an acceptance, a record or an outcome: JSON text, or a value that becomes JSON
/// when a journal writes it.
///
/// A journal in memory keeps the value as it is and makes no JSON. A journal on disk writes it
/// straight into its own buffer by [`RunBody::write_to`]. A body that is read back is always
/// parsed from JSON, so that all journals return the same.
///
/// ```
/// use std::sync::Arc;
/// use rockbot_core::turn::RunBody;
///
/// let body = RunBody::new(Arc::new(["said", "hello"]));
/// assert_eq!(body.to_json()?.get(), r#"["said","hello"]"#);
/// assert_eq!(body.parse::<Vec<String>>()?, ["said", "hello"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct RunBody(Form);

#[derive(Clone)]
enum Form {
    Json(Arc<RawValue>),
    Value(Arc<dyn WriteJson>),
}

/// A value of any type that can be written as JSON.
trait WriteJson: Send + Sync {
    fn write_to(&self, json: &mut Vec<u8>) -> Result<(), serde_json::Error>;
    fn to_json(&self) -> Result<Box<RawValue>, serde_json::Error>;
}

impl<T: Serialize + Send + Sync> WriteJson for T {
    fn write_to(&self, json: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        json::write(json, self)
    }

    fn to_json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        json::to_raw_value(self)
    }
}

impl RunBody {
    /// Creates a body of a value that is written as JSON when a journal needs that.
    pub fn new<T: Serialize + Send + Sync + 'static>(value: Arc<T>) -> Self {
        Self(Form::Value(value))
    }

    /// Appends the body to `json`. The bytes that were appended before an error stay.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be written as JSON.
    pub fn write_to(&self, json: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match &self.0 {
            Form::Json(text) => json.extend_from_slice(text.get().as_bytes()),
            Form::Value(value) => value.write_to(json)?,
        }
        Ok(())
    }

    /// Returns the body as JSON text.
    ///
    /// # Errors
    ///
    /// Returns an error as [`RunBody::write_to`] does.
    pub fn to_json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        match &self.0 {
            Form::Json(text) => Ok((**text).to_owned()),
            Form::Value(value) => value.to_json(),
        }
    }

    /// Parses the body as a `T`.
    ///
    /// # Errors
    ///
    /// Returns an error if the body cannot be written as JSON, or is no `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match &self.0 {
            Form::Json(text) => serde_json::from_str(text.get()),
            Form::Value(value) => serde_json::from_str(value.to_json()?.get()),
        }
    }
}

impl From<Box<RawValue>> for RunBody {
    fn from(json: Box<RawValue>) -> Self {
        Self(Form::Json(json.into()))
    }
}

impl Serialize for RunBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::Json(text) => text.serialize(serializer),
            Form::Value(value) => value.to_json().map_err(S::Error::custom)?.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RunBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

impl fmt::Debug for RunBody {
    /// Formats the body as its JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_json() {
            Ok(json) => f.write_str(json.get()),
            Err(error) => write!(f, "no JSON: {error}"),
        }
    }
}
