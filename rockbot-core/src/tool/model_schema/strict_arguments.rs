//! Arguments of a call in strict mode, without the `null`s that stand for arguments that were left out.

use serde_json::{Map, Value};

use super::normalize::NULLABLE;
use super::strict::StrictSchema;

/// Maximum nesting of schemas that are looked into; what is deeper stays as it is.
const MAX_DEPTH: usize = 64;

impl StrictSchema {
    /// Returns the arguments of a call without each `null` that the original schema does not accept where it is optional:
    /// only the strict form demanded it. `None` if there is none, or the arguments are not JSON.
    pub fn without_added_nulls(&self, arguments: &str) -> Option<String> {
        if !arguments.contains("null") {
            return None;
        }
        let mut value = serde_json::from_str(arguments).ok()?;
        let mut removal = Removal {
            root: &self.plain,
            has_removed: false,
        };
        removal.walk(&mut value, &self.plain, MAX_DEPTH);
        removal.has_removed.then(|| value.to_string())
    }
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
        if let Some(form) = forms.and_then(|forms| forms.iter().find(|form| self.is_form_of(form, value))) {
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
        let is_null = |schema: &Value| schema.get(NULLABLE).is_some() || schema["type"] == "null";
        is_null(schema) || target.is_some_and(is_null)
    }

    /// Returns `true` if a value has the properties of this form: in strict mode it has exactly those.
    fn is_form_of(&self, form: &'a Value, value: &Value) -> bool {
        let form = form
            .get("$ref")
            .and_then(|reference| self.target(reference))
            .unwrap_or(form);
        match value {
            Value::Object(members) => form["properties"].as_object().is_some_and(|properties| {
                properties.len() == members.len() && members.keys().all(|name| properties.contains_key(name))
            }),
            Value::Array(_) => form.get("items").is_some(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    fn target(&self, reference: &Value) -> Option<&'a Value> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }
}
