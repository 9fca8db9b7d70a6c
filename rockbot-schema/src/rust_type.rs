//! JSON Schemas of Rust types, for the model.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use super::doc_text::unwrapped;
use super::model_schema::{ORDER, property_order};

/// Returns the JSON Schema of `T` in the form that models read best: draft 2020-12 without
/// `$schema` and title, with subschemas inline instead of behind `$ref`, and with each paragraph
/// of a doc comment on one line.
///
/// The members of a [`Value`] are sorted unless a crate of the program enables serde_json's
/// `preserve_order`. Where the fields of a struct have another order, the keyword
/// `propertyOrdering` states it.
///
/// ```
/// # use rockbot_schema::schema_of;
/// #[derive(schemars::JsonSchema)]
/// struct Add { a: u8 }
/// assert_eq!(schema_of::<Add>()["properties"]["a"]["type"], "integer");
/// ```
pub fn schema_of<T: JsonSchema>() -> Value {
    // In the schema for serialization all fields are required, so `required` has them in their
    // order.
    let ordered = settings().for_serialize().into_generator();
    let ordered = ordered.into_root_schema_for::<T>().to_value();
    let mut schema = unordered_schema_of::<T>();
    state_order(&mut schema, &ordered);
    schema
}

/// Returns the schema of `T` without the order of its properties, for servers that take standard
/// keywords only.
pub fn unordered_schema_of<T: JsonSchema>() -> Value {
    let settings = settings().with_transform(RecursiveTransform(unwrap_description));
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(members) = schema.as_object_mut() {
        members.remove("title");
    }
    schema
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    })
}

fn unwrap_description(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = unwrapped(text);
    }
}

/// Adds the order of properties to `schema` and its subschemas. `ordered` is a schema of the same
/// shape whose `required` has the order.
fn state_order(schema: &mut Value, ordered: &Value) {
    match (schema, ordered) {
        (Value::Object(members), Value::Object(ordered)) => {
            if let Some(order) = order_to_state(members, ordered) {
                members.insert(ORDER.to_owned(), order);
            }
            for (keyword, value) in members {
                // Values may look like schemas.
                let is_data = ["const", "default", "enum", "examples"].contains(&&**keyword);
                if let Some(ordered) = ordered.get(keyword).filter(|_| !is_data) {
                    state_order(value, ordered);
                }
            }
        }
        (Value::Array(items), Value::Array(ordered)) => {
            items
                .iter_mut()
                .zip(ordered)
                .for_each(|(item, ordered)| state_order(item, ordered));
        }
        _ => {}
    }
}

/// Returns the order of the properties, unless a reader finds the same without: the required
/// properties first, then the others.
fn order_to_state(members: &Map<String, Value>, ordered: &Map<String, Value>) -> Option<Value> {
    let properties = members.get("properties")?.as_object()?;
    let order = property_order(properties, Some(ordered.get("required")?));
    let implied = property_order(properties, members.get("required"));
    (order != implied).then(|| order.into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[allow(dead_code, reason = "only its schema is used")]
    #[derive(JsonSchema)]
    struct Inner {
        zone: Option<String>,
        city: String,
    }

    /// Books a
    /// trip.
    #[allow(dead_code, reason = "only its schema is used")]
    #[derive(JsonSchema)]
    struct Trip {
        to: Inner,
        /// The day, which
        /// may be open.
        on: Option<String>,
        by: Vec<Inner>,
        #[serde(default)]
        and: BTreeMap<String, Option<Inner>>,
    }

    #[test]
    fn the_order_of_fields_is_stated_where_it_is_not_implied() {
        let schema = schema_of::<Trip>();
        assert_eq!(schema[ORDER], serde_json::json!(["to", "on", "by", "and"]));
        let inner = serde_json::json!(["zone", "city"]);
        assert_eq!(schema["properties"]["to"][ORDER], inner);
        assert_eq!(schema["properties"]["by"]["items"][ORDER], inner);
        assert_eq!(schema["properties"]["and"]["additionalProperties"][ORDER], inner);

        #[allow(dead_code, reason = "only its schema is used")]
        #[derive(JsonSchema)]
        struct Plain {
            z: u8,
            b: u8,
            c: Option<u8>,
        }
        assert_eq!(schema_of::<Plain>().get(ORDER), None);
    }

    #[test]
    fn a_doc_comment_is_one_line() {
        let schema = schema_of::<Trip>();
        assert_eq!(schema["description"], "Books a trip.");
        assert_eq!(schema["properties"]["on"]["description"], "The day, which may be open.");
    }
}
