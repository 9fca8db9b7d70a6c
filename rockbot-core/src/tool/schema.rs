//! JSON Schemas of Rust types, for the model.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the JSON Schema of `T` in the form that models read best: draft 2020-12 without `$schema` and title, and
/// with subschemas inline instead of behind `$ref`.
///
/// ```
/// # use rockbot_core::tool::schema_of;
/// #[derive(schemars::JsonSchema)]
/// struct Add { a: u8 }
/// assert_eq!(schema_of::<Add>()["properties"]["a"]["type"], "integer");
/// ```
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(members) = schema.as_object_mut() {
        members.remove("title");
    }
    schema
}
