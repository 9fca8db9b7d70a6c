//! The keywords of a schema for models: plain types instead of unions with `null`, and nothing
//! that only costs tokens.

use serde_json::{Map, Value};

use super::merge::{is_only_null, merge, merge_single};
use super::references::{Inliner, NullForm};

/// The role of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    /// Its value is a schema.
    Schema,
    /// Its value is a list of schemas.
    List,
    /// Its value has schemas by name.
    Map,
    /// Its value is kept as it is.
    Data,
    /// A model has no use for it.
    Hidden,
}

/// Returns the role of `keyword` with this `value`.
pub(super) fn kind_of(keyword: &str, value: &Value) -> Keyword {
    match keyword {
        // Some generators write `null` for an absent keyword, and `null` is the default of a member
        // that may be left out.
        "const" => Keyword::Data,
        _ if value.is_null() => Keyword::Hidden,
        "$schema" | "$id" | "$anchor" | "$comment" | "nullable" | "title" => Keyword::Hidden,
        "format" if is_of_numbers(value) => Keyword::Hidden,
        "default" if value == "" => Keyword::Hidden,
        "required" if value.as_array().is_some_and(Vec::is_empty) => Keyword::Hidden,
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => Keyword::Map,
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => Keyword::List,
        "items" if value.is_array() => Keyword::List,
        "items"
        | "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedProperties"
        | "unevaluatedItems" => Keyword::Schema,
        _ => Keyword::Data,
    }
}

/// Returns `true` for the formats of numbers, such as `uint32`: they name types of Rust, not of
/// JSON.
fn is_of_numbers(format: &Value) -> bool {
    let format = format.as_str().unwrap_or_default();
    let unsigned = format.strip_prefix('u').unwrap_or(format);
    let bits = unsigned.strip_prefix("int");
    bits.is_some_and(|bits| bits.bytes().all(|byte| byte.is_ascii_digit())) || matches!(format, "float" | "double")
}

/// The keyword of [`NullForm::Keyword`]; it says that a schema accepts `null`.
pub(super) const NULLABLE: &str = "nullable";

impl<'a> Inliner<'a> {
    /// Returns `schema` normalized.
    pub(super) fn schema(&mut self, schema: &'a Value) -> Value {
        match schema.as_object() {
            Some(members) if self.spend() => Value::Object(self.members(members)),
            Some(_) => Value::Null,
            None => schema.clone(),
        }
    }

    fn members(&mut self, members: &'a Map<String, Value>) -> Map<String, Value> {
        let target = members.get("$ref").and_then(|reference| self.inlined(reference));
        let mut result = Map::new();
        for (keyword, value) in members {
            if (keyword == "$ref" && target.is_some()) || matches!(&**keyword, "$defs" | "definitions") {
                continue;
            }
            if let Some(value) = self.keyword(keyword, value) {
                result.insert(keyword.clone(), value);
            }
        }
        if let Some(target) = target {
            merge(&mut result, target);
        }
        merge_single(&mut result);
        match self.null_form() {
            NullForm::Words => state_null(&mut result, members),
            NullForm::Keyword if accepts_null(members) => {
                result.insert(NULLABLE.to_owned(), true.into());
            }
            NullForm::Keyword => {}
        }
        result
    }

    fn keyword(&mut self, keyword: &str, value: &'a Value) -> Option<Value> {
        Some(match kind_of(keyword, value) {
            Keyword::Hidden => return None,
            Keyword::Schema => self.schema(value),
            Keyword::List => value.as_array()?.iter().map(|schema| self.schema(schema)).collect(),
            Keyword::Map => {
                let schemas = value.as_object()?.iter();
                schemas
                    .map(|(name, schema)| (name.clone(), self.schema(schema)))
                    .collect()
            }
            Keyword::Data if keyword == "type" => single(without(value, |kind| kind == "null")),
            Keyword::Data if keyword == "enum" => without(value, Value::is_null),
            Keyword::Data => value.clone(),
        })
    }
}

/// Returns a list without the items that stand for `null`, unless they are all.
fn without(value: &Value, is_null: impl Fn(&Value) -> bool) -> Value {
    let Some(items) = value.as_array() else {
        return value.clone();
    };
    let others: Vec<_> = items.iter().filter(|item| !is_null(item)).cloned().collect();
    if others.is_empty() {
        value.clone()
    } else {
        others.into()
    }
}

/// Returns a list of one type as the type itself. The choices of an `enum` stay a list: servers
/// refuse anything else.
fn single(types: Value) -> Value {
    match types.as_array().map(Vec::as_slice) {
        Some([kind]) if kind.is_string() => kind.clone(),
        _ => types,
    }
}

/// States in words that a required property may be `null`. It cannot be left out instead, unlike
/// the other properties, whose types are without `null`.
fn state_null(result: &mut Map<String, Value>, original: &Map<String, Value>) {
    let required = original.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let (Some(originals), Some(Value::Object(properties))) = (original.get("properties"), result.get_mut("properties"))
    else {
        return;
    };
    let is_nullable = |name: &&str| originals[*name].as_object().is_some_and(accepts_null);
    for name in names.filter(is_nullable) {
        if let Some(Value::Object(property)) = properties.get_mut(name) {
            let description = property.get("description").and_then(Value::as_str);
            let text = description.map_or_else(|| "May be null.".to_owned(), |text| format!("{text} May be null."));
            property.insert("description".to_owned(), text.into());
        }
    }
}

/// Returns `true` if a schema accepts `null` and other values.
fn accepts_null(schema: &Map<String, Value>) -> bool {
    let any = |keyword: &str, is_null: fn(&Value) -> bool| {
        let items = schema.get(keyword).and_then(Value::as_array);
        items.is_some_and(|items| items.len() > 1 && items.iter().any(is_null))
    };
    schema.get(NULLABLE).is_some_and(|value| *value == true)
        || any("type", |kind| kind == "null")
        || any("enum", Value::is_null)
        || ["anyOf", "oneOf"].iter().any(|keyword| any(keyword, is_only_null))
}
