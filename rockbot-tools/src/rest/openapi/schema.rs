//! Schemas of a document as the schemas of arguments: JSON Schema with definitions of its own.

use std::collections::{BTreeMap, VecDeque};

use rockbot_core::support::one_line;
use serde_json::{Map, Value, json};

/// Maximum number of definitions of one tool. A reference to a further one accepts everything.
const MAX_DEFINITIONS: usize = 48;

/// Maximum depth of a schema. What is deeper accepts everything.
const MAX_DEPTH: usize = 24;

/// Maximum size of the definitions of one tool, in bytes.
const MAX_BYTES: usize = 32 << 10;

/// Maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 200;

/// Members of schemas that say nothing about arguments.
const LEFT_OUT: [&str; 9] = [
    "example",
    "examples",
    "externalDocs",
    "xml",
    "discriminator",
    "nullable",
    "deprecated",
    "title",
    "$schema",
];

/// Members of schemas that are schemas.
const SCHEMAS: [&str; 10] = [
    "items",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
];

/// The schemas that one tool needs.
pub(super) struct Schemas<'d> {
    document: &'d Value,
    /// The names of the definitions, by their references.
    names: BTreeMap<String, String>,
    waiting: VecDeque<(String, &'d Value)>,
    definitions: Map<String, Value>,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(document: &'d Value) -> Self {
        Self {
            document,
            names: BTreeMap::new(),
            waiting: VecDeque::new(),
            definitions: Map::new(),
        }
    }

    /// Returns a schema of the document as one of the tool.
    pub(super) fn converted(&mut self, schema: &'d Value) -> Value {
        self.at(schema, 0)
    }

    /// Returns the definitions that the schemas refer to, or `None` if there are none.
    pub(super) fn definitions(mut self) -> Option<Value> {
        let mut size = 0;
        while let Some((name, schema)) = self.waiting.pop_front() {
            let converted = if size < MAX_BYTES {
                self.at(schema, 0)
            } else {
                json!({})
            };
            size += converted.to_string().len();
            self.definitions.insert(name, converted);
        }
        (!self.definitions.is_empty()).then_some(self.definitions.into())
    }

    /// The recursion ends at a depth of 24.
    fn at(&mut self, schema: &'d Value, depth: usize) -> Value {
        let Some(members) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
            return if schema.is_boolean() { schema.clone() } else { json!({}) };
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.reference(reference);
        }
        let mut converted = Map::new();
        for (name, member) in members {
            let value = match (name.as_str(), member) {
                (name, _) if LEFT_OUT.contains(&name) || name.starts_with("x-") => continue,
                ("required", Value::Array(names)) => {
                    let is_read_only = |name: &&Value| {
                        let property = name.as_str().and_then(|name| members.get("properties")?.get(name));
                        property.is_some_and(|schema| schema["readOnly"] == true)
                    };
                    names.iter().filter(|name| !is_read_only(name)).cloned().collect()
                }
                ("properties" | "patternProperties" | "dependentSchemas", Value::Object(properties)) => {
                    let properties = properties.iter().filter(|(_, schema)| schema["readOnly"] != true);
                    properties
                        .map(|(name, schema)| (name.clone(), self.at(schema, depth + 1)))
                        .collect::<Map<_, _>>()
                        .into()
                }
                (name, schema) if SCHEMAS.contains(&name) => self.at(schema, depth + 1),
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => schemas
                    .iter()
                    .map(|schema| self.at(schema, depth + 1))
                    .collect::<Vec<_>>()
                    .into(),
                ("description", Value::String(text)) => {
                    one_line(text).chars().take(MAX_DESCRIPTION).collect::<String>().into()
                }
                // A boolean in version 3.0, and a number since.
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => continue,
                (_, member) => member.clone(),
            };
            converted.insert(name.clone(), value);
        }
        if members.get("nullable") == Some(&Value::Bool(true)) {
            allow_null(&mut converted);
        }
        converted.into()
    }

    fn reference(&mut self, reference: &str) -> Value {
        if let Some(name) = self.names.get(reference) {
            return json!({ "$ref": format!("#/$defs/{name}") });
        }
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| self.document.pointer(pointer));
        let Some(target) = target.filter(|_| self.names.len() < MAX_DEFINITIONS) else {
            return json!({});
        };
        let last = reference.rsplit('/').next().unwrap_or_default();
        let plain: String = last
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let name = match self.names.values().any(|name| *name == plain) {
            true => format!("{plain}_{}", self.names.len()),
            false => plain,
        };
        self.names.insert(reference.to_owned(), name.clone());
        self.waiting.push_back((name.clone(), target));
        json!({ "$ref": format!("#/$defs/{name}") })
    }
}

/// Adds `null` to the types of a schema of version 3.0.
fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(Value::String(kind)) = schema.get("type") {
        let kinds = json!([kind, "null"]);
        schema.insert("type".to_owned(), kinds);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}
