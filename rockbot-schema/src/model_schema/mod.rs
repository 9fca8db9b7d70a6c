//! The schema of a tool's arguments as models get it: normalized, and as JSON text.
//!
//! Servers and chat templates support less of JSON Schema than
//! [`ArgumentSchema`](super::ArgumentSchema) validates: OpenAI refuses arguments without
//! `properties`, templates fail on a list in `type`, few resolve a `$ref`. And each keyword that
//! a model cannot use costs tokens in every request. Therefore [`normalize`] makes the schema
//! plainer than the schema that calls are validated against, [`one_object`] merges the forms that
//! arguments may have, and [`write`] gives it a fixed order. All of that happens once, when a
//! tool is registered.

mod merge;
mod normalize;
mod one_object;
mod optional_nulls;
mod references;
mod strict;
mod write;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use optional_nulls::without_optional_nulls;
use references::NullForm;
pub use strict::{NotStrict, StrictSchema};
pub(crate) use write::{ORDER, property_order};

/// Returns the JSON text of `schema` for models: that of an object with `properties`, however few.
pub fn model_schema(schema: &Value) -> String {
    write::text(&arguments(schema, NullForm::Words).into())
}

/// Returns the schema of a tool's arguments as one object with `properties`.
fn arguments(schema: &Value, null: NullForm) -> Map<String, Value> {
    let mut members = references::normalized(schema, null);
    one_object::make_one_object(&mut members);
    members.entry("type").or_insert_with(|| "object".into());
    members.entry("properties").or_insert_with(|| Map::new().into());
    members
}

/// Returns the JSON text of `schema`, of any type, for models that read it in words.
pub fn schema_text(schema: &Value) -> String {
    write::text(&references::normalized(schema, NullForm::Words).into())
}
