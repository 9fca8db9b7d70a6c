//! The text of a schema: the keywords in the order that reads best, the properties in the
//! author's order.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::normalize::{Keyword, kind_of};

/// The keyword that lists the names of `properties` in their order. Objects in [`Value`] are
/// sorted, so the order of a struct's fields would otherwise be lost. Models of Google know the
/// keyword; for others it is applied and left out.
pub(crate) const ORDER: &str = "propertyOrdering";

/// Keywords before the others, and after them.
const FIRST: [&str; 2] = ["type", "description"];
const LAST: [&str; 4] = ["properties", "required", "$defs", "definitions"];

/// Returns the JSON text of a normalized schema.
pub(super) fn text(schema: &Value) -> String {
    let mut text = String::new();
    push_schema(&mut text, schema);
    text
}

/// Returns the names of `properties`: first the `listed` names, then the others.
pub(crate) fn property_order<'a>(properties: &'a Map<String, Value>, listed: Option<&'a Value>) -> Vec<&'a str> {
    let listed = listed.and_then(Value::as_array).into_iter().flatten();
    let listed = listed
        .filter_map(Value::as_str)
        .filter(|name| properties.contains_key(*name));
    let mut names: Vec<&str> = Vec::with_capacity(properties.len());
    for name in listed.chain(properties.keys().map(String::as_str)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn push_schema(text: &mut String, schema: &Value) {
    let Value::Object(members) = schema else {
        return push_value(text, schema);
    };
    let is_between = |keyword: &&str| !FIRST.contains(keyword) && !LAST.contains(keyword) && *keyword != ORDER;
    let between = members.keys().map(String::as_str).filter(is_between);
    let keywords = FIRST.into_iter().chain(between).chain(LAST);
    let present = keywords.filter_map(|keyword| Some((keyword, members.get(keyword)?)));
    push_members(text, present, |text, keyword, value| match kind_of(keyword, value) {
        Keyword::Schema => push_schema(text, value),
        Keyword::List => push_list(text, value),
        Keyword::Map => push_map(text, value, members),
        Keyword::Data | Keyword::Hidden => push_value(text, value),
    });
}

fn push_list(text: &mut String, schemas: &Value) {
    text.push('[');
    for (index, schema) in schemas.as_array().into_iter().flatten().enumerate() {
        if index > 0 {
            text.push(',');
        }
        push_schema(text, schema);
    }
    text.push(']');
}

/// Appends schemas by name. `parent` is the schema that they belong to, which may list the order
/// of the names.
fn push_map(text: &mut String, schemas: &Value, parent: &Map<String, Value>) {
    let Some(schemas) = schemas.as_object() else {
        return push_value(text, schemas);
    };
    let listed = parent.get(ORDER).or_else(|| parent.get("required"));
    let names = property_order(schemas, listed).into_iter();
    push_members(text, names.map(|name| (name, &schemas[name])), |text, _, schema| {
        push_schema(text, schema);
    });
}

fn push_members<'a>(
    text: &mut String,
    members: impl Iterator<Item = (&'a str, &'a Value)>,
    push: impl Fn(&mut String, &str, &Value),
) {
    text.push('{');
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            text.push(',');
        }
        push_value(text, &name.into());
        text.push(':');
        push(text, name, value);
    }
    text.push('}');
}

fn push_value(text: &mut String, value: &Value) {
    // Writing to a text never fails.
    let _ = write!(text, "{value}");
}
