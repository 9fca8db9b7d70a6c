//! Arguments of a call without the `null`s that stand for arguments that were left out: models
//! send them often, and OpenAI's strict mode demands them.

use serde_json::{Map, Value};

use super::normalize::NULLABLE;
use super::references::NullForm;
use crate::arguments::parse;

/// Maximum nesting of schemas that are looked into; deeper schemas stay as they are.
const MAX_DEPTH: usize = 64;

/// Keywords that restrict a schema. A schema that does not accept every value has at least one.
const NARROWING: [&str; 9] = [
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "items",
    "oneOf",
    "properties",
    "type",
];

/// Returns the arguments of a call without each `null` that `schema` does not accept where it is
/// optional. `None` if there is no such null, or the arguments are not JSON.
///
/// ```
/// use rockbot_schema::without_optional_nulls;
/// use serde_json::json;
///
/// let days = json!({"type": "object", "properties": {"days": {"type": "integer"}, "note": {"type": ["string", "null"]}}});
/// let left = without_optional_nulls(&days, r#"{"days": null, "note": null}"#);
/// assert_eq!(left.as_deref(), Some(r#"{"note":null}"#));
/// ```
pub fn without_optional_nulls(schema: &Value, arguments: &str) -> Option<String> {
    if !arguments.contains("null") {
        return None;
    }
    let mut value = parse(arguments).ok()?;
    let mut plain = super::arguments(schema, NullForm::Keyword);
    // Arguments are an object, whatever the schema says.
    plain.remove(NULLABLE);
    let plain = plain.into();
    let mut removal = Removal {
        root: &plain,
        has_removed: false,
    };
    removal.walk(&mut value, &plain, MAX_DEPTH);
    removal.has_removed.then(|| value.to_string())
}

struct Removal<'a> {
    root: &'a Value,
    has_removed: bool,
}

impl<'a> Removal<'a> {
    fn walk(&mut self, value: &mut Value, schema: &'a Value, depth: usize) {
        let (Some(depth), Some(schema)) = (depth.checked_sub(1), schema.as_object()) else {
            return;
        };
        if let Some(target) = schema.get("$ref").and_then(|reference| self.target(reference)) {
            return self.walk(value, target, depth);
        }
        let forms = schema
            .get("anyOf")
            .or_else(|| schema.get("oneOf"))
            .and_then(Value::as_array);
        if let Some(form) = forms.and_then(|forms| self.form_of(forms, value)) {
            return self.walk(value, form, depth);
        }
        match value {
            Value::Object(members) => self.object(members, schema, depth),
            Value::Array(items) => {
                if let Some(schema) = schema.get("items") {
                    items.iter_mut().for_each(|item| self.walk(item, schema, depth));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn object(&mut self, members: &mut Map<String, Value>, schema: &'a Map<String, Value>, depth: usize) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.contains(&name.into()));
        let count = members.len();
        members.retain(|name, value| {
            let schema = properties.get(name).filter(|_| value.is_null() && !is_required(name));
            schema.is_none_or(|schema| self.accepts_null(schema))
        });
        self.has_removed |= members.len() < count;
        for (name, value) in members {
            if let Some(schema) = properties.get(name) {
                self.walk(value, schema, depth);
            }
        }
    }

    fn accepts_null(&self, schema: &Value) -> bool {
        let target = schema.get("$ref").and_then(|reference| self.target(reference));
        let is_null = |schema: &Value| {
            let is_narrow = NARROWING.iter().any(|keyword| schema.get(keyword).is_some());
            !is_narrow || schema.get(NULLABLE).is_some() || schema["type"] == "null"
        };
        is_null(schema) || target.is_some_and(is_null)
    }

    /// Returns the form of a value: among object forms the form with exactly its properties, else
    /// the only form of its type.
    fn form_of(&self, forms: &'a [Value], value: &Value) -> Option<&'a Value> {
        let resolved = |form: &'a Value| {
            form.get("$ref")
                .and_then(|reference| self.target(reference))
                .unwrap_or(form)
        };
        let properties = |form: &'a Value| resolved(form).get("properties").and_then(Value::as_object);
        let has_type = |form: &&'a Value| match value {
            Value::Object(_) => properties(form).is_some(),
            Value::Array(_) => resolved(form).get("items").is_some(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        let is_exact = |form: &&'a Value| {
            let members = value.as_object().zip(properties(form));
            members.is_some_and(|(members, properties)| members.keys().eq(properties.keys()))
        };
        let mut of_type = forms.iter().filter(has_type);
        let only = of_type.next().filter(|_| of_type.next().is_none());
        forms.iter().find(is_exact).or(only)
    }

    fn target(&self, reference: &Value) -> Option<&'a Value> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }
}
