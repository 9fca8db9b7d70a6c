//! Schemas in the form of OpenAI's strict mode. In this mode a server samples only calls that
//! match.
//!
//! The form knows fewer schemas: each property is required, so an optional one accepts `null` in
//! its place; objects are closed; and of the keywords that constrain a value it knows some. A
//! keyword that it does not know is left out, because calls are validated against the original
//! anyway. A schema that means something else in this form is refused: see [`NotStrict`].

use std::fmt;

use serde_json::{Map, Value, json};

use super::normalize::NULLABLE;
use super::references::NullForm;
use super::write::{self, ORDER, property_order};

/// Bounds of the form: nested objects and lists, and listed values in the whole schema.
const MAX_DEPTH: usize = 10;
const MAX_VALUES: usize = 1000;

/// Keywords that are kept as they are.
const KEPT: [&str; 8] = [
    "description",
    "enum",
    "const",
    "minimum",
    "maximum",
    "multipleOf",
    "minItems",
    "maxItems",
];

/// Formats of texts that the form knows.
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// The schema of a tool's arguments in the form of OpenAI's strict mode.
///
/// ```
/// use rockbot_schema::{StrictSchema, schema_of};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Weather { city: String, days: Option<u8> }
///
/// let strict = StrictSchema::of(&schema_of::<Weather>())?;
/// let strict = strict.text();
/// assert!(strict.ends_with(r#""required":["city","days"]}"#));
/// assert!(strict.contains(r#""days":{"type":["integer","null"]"#));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StrictSchema {
    text: String,
}

/// The part of a tool's schema that OpenAI's strict mode has no form for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStrict {
    path: String,
    reason: &'static str,
}

impl fmt::Display for NotStrict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "the schema as a whole {}", self.reason),
            path => write!(f, "the argument `{path}` {}", self.reason),
        }
    }
}

impl std::error::Error for NotStrict {}

impl StrictSchema {
    /// Converts the schema of a tool's arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if strict servers cannot take the schema, such as an object with members of
    /// any name.
    pub fn of(schema: &Value) -> Result<Self, NotStrict> {
        let mut plain = super::arguments(schema, NullForm::Keyword);
        // Arguments are an object, whatever the schema says.
        plain.remove(NULLABLE);
        let mut converter = Converter::default();
        let mut members = converter.object(&plain, MAX_DEPTH)?;
        let definitions = ["$defs", "definitions"].into_iter();
        for (name, schema) in definitions
            .filter_map(|keyword| plain.get(keyword)?.as_object())
            .flatten()
        {
            converter.path = vec![name.clone()];
            let definition = converter.schema(schema, MAX_DEPTH)?;
            members.entry("$defs").or_insert_with(|| json!({}))[name] = definition;
        }
        let text = write::text(&members.into());
        Ok(Self { text })
    }

    /// Returns the schema as JSON text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Passes the text through `edit`, for tools whose texts are not trusted.
    #[must_use]
    pub fn map_text(self, edit: impl FnOnce(String) -> String) -> Self {
        Self { text: edit(self.text) }
    }
}

#[derive(Default)]
struct Converter {
    /// Names of the properties that lead to the current schema.
    path: Vec<String>,
    /// Number of listed values so far.
    values: usize,
}

impl Converter {
    fn refuse<T>(&self, reason: &'static str) -> Result<T, NotStrict> {
        let path = self.path.join(".");
        Err(NotStrict { path, reason })
    }

    /// Converts a schema. `depth` is the nesting that is left.
    fn schema(&mut self, schema: &Value, depth: usize) -> Result<Value, NotStrict> {
        let Some(members) = schema.as_object() else {
            return self.refuse("accepts any value");
        };
        let converted = self.members(members, depth)?;
        let accepts_null = members.contains_key(NULLABLE);
        Ok(if accepts_null {
            nullable(converted)
        } else {
            converted.into()
        })
    }

    fn members(&mut self, members: &Map<String, Value>, depth: usize) -> Result<Map<String, Value>, NotStrict> {
        let Some(depth) = depth.checked_sub(1) else {
            return self.refuse("is nested too deep");
        };
        if let Some(reference) = members.get("$ref") {
            return self.reference(reference);
        }
        if members.contains_key("allOf") {
            return self.refuse("combines several schemas");
        }
        if let Some(forms) = members.get("anyOf").or_else(|| members.get("oneOf")) {
            return self.any_of(members, forms, depth);
        }
        let mut kept = self.kept(members)?;
        let Some(kind) = kind_of(members) else {
            return self.refuse("accepts any value");
        };
        let has = |name: &str| kind == name || kind.as_array().is_some_and(|kinds| kinds.contains(&name.into()));
        if has("object") {
            kept.append(&mut self.object(members, depth)?);
        }
        if has("array") {
            kept.insert("items".to_owned(), self.items(members, depth)?);
        }
        kept.insert("type".to_owned(), kind);
        Ok(kept)
    }

    /// Returns the keywords that constrain or describe a value in the same way in this form.
    fn kept(&mut self, members: &Map<String, Value>) -> Result<Map<String, Value>, NotStrict> {
        self.values += members.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        if self.values > MAX_VALUES {
            return self.refuse("lists too many values");
        }
        let is_kept = |(keyword, value): &(&String, &Value)| match &***keyword {
            "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
            "pattern" => value.as_str().is_some_and(is_plain_pattern),
            // In older drafts they are no numbers.
            "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
            keyword => KEPT.contains(&keyword),
        };
        let kept = members.iter().filter(is_kept);
        Ok(kept.map(|(keyword, value)| (keyword.clone(), value.clone())).collect())
    }

    /// Converts a reference, beside which the form allows nothing.
    fn reference(&self, reference: &Value) -> Result<Map<String, Value>, NotStrict> {
        let target = reference.as_str().unwrap_or_default();
        let name = ["#/$defs/", "#/definitions/"]
            .iter()
            .find_map(|start| target.strip_prefix(start));
        let target = match name {
            _ if target == "#" => target.to_owned(),
            Some(name) if !name.contains('/') => format!("#/$defs/{name}"),
            _ => return self.refuse("refers to a part of another schema"),
        };
        Ok(Map::from_iter([("$ref".to_owned(), target.into())]))
    }

    fn any_of(
        &mut self,
        members: &Map<String, Value>,
        forms: &Value,
        depth: usize,
    ) -> Result<Map<String, Value>, NotStrict> {
        let mixed = ["type", "properties", "items", "enum", "const"];
        if mixed.iter().any(|keyword| members.contains_key(*keyword)) {
            return self.refuse("combines alternatives with other constraints");
        }
        let forms = forms.as_array().into_iter().flatten();
        let forms = forms
            .map(|form| self.schema(form, depth))
            .collect::<Result<Value, _>>()?;
        let description = members
            .get("description")
            .map(|text| ("description".to_owned(), text.clone()));
        Ok([("anyOf".to_owned(), forms)].into_iter().chain(description).collect())
    }

    /// Converts an object to a closed object that requires all its properties.
    fn object(&mut self, members: &Map<String, Value>, depth: usize) -> Result<Map<String, Value>, NotStrict> {
        let is_closed = members.get("additionalProperties") == Some(&false.into());
        let is_open = members.contains_key("additionalProperties") && !is_closed;
        let properties = match members.get("properties").and_then(Value::as_object) {
            _ if is_open || members.contains_key("patternProperties") => {
                return self.refuse("accepts properties of any name");
            }
            Some(properties) => properties,
            None if is_closed => &Map::new(),
            None => return self.refuse("accepts properties of any name"),
        };
        let names = property_order(properties, members.get(ORDER).or_else(|| members.get("required")));
        let required = members.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.contains(&name.into()));
        let mut converted = Map::new();
        for name in &names {
            self.path.push((*name).to_owned());
            let property = self.schema(&properties[*name], depth)?;
            self.path.pop();
            let property = match property {
                Value::Object(property) if !is_required(name) => nullable(property),
                property => property,
            };
            converted.insert((*name).to_owned(), property);
        }
        let mut object = Map::from_iter([
            ("type".to_owned(), "object".into()),
            ("additionalProperties".to_owned(), false.into()),
            ("required".to_owned(), names.into()),
            ("properties".to_owned(), converted.into()),
        ]);
        object.extend(
            members
                .get("description")
                .map(|text| ("description".to_owned(), text.clone())),
        );
        Ok(object)
    }

    fn items(&mut self, members: &Map<String, Value>, depth: usize) -> Result<Value, NotStrict> {
        match members.get("items") {
            Some(items @ Value::Object(_)) if !members.contains_key("prefixItems") => self.schema(items, depth),
            _ => self.refuse("is a list whose items have no single schema"),
        }
    }
}

/// Returns the type of a value. A schema that states no type has the type of the values that it
/// lists.
fn kind_of(members: &Map<String, Value>) -> Option<Value> {
    if let Some(kind) = members.get("type") {
        return Some(kind.clone());
    }
    if members.contains_key("properties") {
        return Some("object".into());
    }
    let values = match (members.get("const"), members.get("enum")) {
        (Some(only), _) => std::slice::from_ref(only),
        (None, Some(Value::Array(values))) => values,
        (None, _) => return None,
    };
    let mut kinds = Vec::new();
    for value in values {
        let kind: Value = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) | Value::Object(_) => return None,
        }
        .into();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    match kinds.len() {
        1 => kinds.pop(),
        _ => Some(kinds.into()),
    }
}

/// Returns `true` for a pattern of the syntax that all engines share: without groups by `(?` and
/// without references.
fn is_plain_pattern(pattern: &str) -> bool {
    let has_reference = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit());
    !pattern.contains("(?") && !has_reference
}

/// Returns a converted schema that accepts `null` as well.
fn nullable(mut schema: Map<String, Value>) -> Value {
    if let Some(Value::Array(forms)) = schema.get_mut("anyOf") {
        push_new(forms, json!({"type": "null"}));
        return schema.into();
    }
    if schema.contains_key("const") {
        return or_null(schema);
    }
    match schema.get_mut("type") {
        None => return or_null(schema),
        Some(Value::Array(kinds)) => push_new(kinds, "null".into()),
        Some(kind) if kind != "null" => *kind = json!([kind.take(), "null"]),
        Some(_) => {}
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        push_new(values, Value::Null);
    }
    schema.into()
}

fn or_null(schema: Map<String, Value>) -> Value {
    json!({ "anyOf": [Value::Object(schema), {"type": "null"}] })
}

fn push_new(list: &mut Vec<Value>, value: Value) {
    if !list.contains(&value) {
        list.push(value);
    }
}
