//! Schemas of a document as the schemas of arguments: JSON Schema with definitions of its own.

use std::collections::{BTreeMap, VecDeque};

use rockbot_core::support::one_line;
use serde_json::{Map, Value, json};

/// Maximum number of definitions of one tool. A reference to a further definition accepts
/// everything.
const MAX_DEFINITIONS: usize = 48;

/// Maximum depth of a schema. A deeper schema accepts everything.
const MAX_DEPTH: usize = 24;

/// Maximum size of the definitions of one tool, in bytes.
const MAX_BYTES: usize = 32 << 10;

/// Maximum weight of the schemas of one tool: their texts in bytes, and 8 for each value. A
/// schema beyond it is left out, and so accepts everything.
const MAX_WEIGHT: usize = 128 << 10;

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
    /// Weight that further schemas may have.
    left: usize,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(document: &'d Value) -> Self {
        Self {
            document,
            names: BTreeMap::new(),
            waiting: VecDeque::new(),
            definitions: Map::new(),
            left: MAX_WEIGHT,
        }
    }

    /// Returns a schema of the document as a schema of the tool.
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
        if !self.has_room(0) {
            return json!({});
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.reference(reference);
        }
        let converted = members
            .iter()
            .filter_map(|(name, member)| Some((name.clone(), self.member(name, member, members, depth + 1)?)));
        let mut converted: Map<_, _> = converted.collect();
        if members.get("nullable") == Some(&Value::Bool(true)) {
            allow_null(&mut converted);
        }
        converted.into()
    }

    /// Returns a member of the schema `members`, or `None` for a member that says nothing about
    /// arguments. Schemas in it are at `depth`.
    fn member(&mut self, name: &str, member: &'d Value, members: &Map<String, Value>, depth: usize) -> Option<Value> {
        Some(match (name, member) {
            (name, _) if LEFT_OUT.contains(&name) || name.starts_with("x-") => return None,
            // A boolean in version 3.0, and a number since.
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => return None,
            ("required", Value::Array(names)) if self.has_room_for_all(member) => required(names, members),
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(properties)) => {
                let properties = properties.iter().filter(|(_, schema)| schema["readOnly"] != true);
                let converted = properties.map_while(|(name, schema)| {
                    let has_room = self.has_room(name.len());
                    has_room.then(|| (name.clone(), self.at(schema, depth)))
                });
                converted.collect::<Map<_, _>>().into()
            }
            (name, schema) if SCHEMAS.contains(&name) => self.at(schema, depth),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                // A missing alternative would refuse values that the API takes.
                let converted: Vec<_> = schemas.iter().map_while(|schema| self.left_at(schema, depth)).collect();
                (converted.len() == schemas.len()).then(|| converted.into())?
            }
            ("description", Value::String(text)) => {
                one_line(text).chars().take(MAX_DESCRIPTION).collect::<String>().into()
            }
            (_, member) => self.has_room_for_all(member).then(|| member.clone())?,
        })
    }

    /// Returns a schema, or `None` if no weight is left.
    fn left_at(&mut self, schema: &'d Value, depth: usize) -> Option<Value> {
        (self.left > 0).then(|| self.at(schema, depth))
    }

    /// Takes the weight of a value with a text of this length, if it is left.
    fn has_room(&mut self, length: usize) -> bool {
        let left = self.left.checked_sub(8 + length);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    /// Takes the weight of a value and all values in it, if it is left, or else none of it.
    fn has_room_for_all(&mut self, value: &Value) -> bool {
        let before = self.left;
        let has_room = self.has_room_for(value);
        if !has_room {
            self.left = before;
        }
        has_room
    }

    fn has_room_for(&mut self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.has_room(text.len()),
            Value::Array(items) => self.has_room(0) && items.iter().all(|item| self.has_room_for(item)),
            Value::Object(members) => {
                self.has_room(0)
                    && members
                        .iter()
                        .all(|(name, value)| self.has_room(name.len()) && self.has_room_for(value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => self.has_room(0),
        }
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
        let name = if self.names.values().any(|name| *name == plain) {
            format!("{plain}_{}", self.names.len())
        } else {
            plain
        };
        self.names.insert(reference.to_owned(), name.clone());
        self.waiting.push_back((name.clone(), target));
        json!({ "$ref": format!("#/$defs/{name}") })
    }
}

/// Returns the names of the required properties of the schema `members`, without properties that
/// only servers write.
fn required(names: &[Value], members: &Map<String, Value>) -> Value {
    let is_read_only = |name: &&Value| {
        let property = name.as_str().and_then(|name| members.get("properties")?.get(name));
        property.is_some_and(|schema| schema["readOnly"] == true)
    };
    names.iter().filter(|name| !is_read_only(name)).cloned().collect()
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
