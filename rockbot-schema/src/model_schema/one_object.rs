//! One object schema for all forms that the arguments of a tool may have.
//!
//! OpenAI and Anthropic refuse `oneOf`, `anyOf`, `allOf`, `enum` and `not` at the top of a tool's
//! arguments, and templates look for `properties` alone. So the forms become one object with the
//! properties of all, and words say which of them belong together. Calls are validated against
//! the original.

use serde_json::{Map, Value, json};

use super::write::{ORDER, property_order};

/// Keywords that servers refuse at the top, beside the keywords that are merged.
const REFUSED: [&str; 3] = ["enum", "const", "not"];

/// Maximum number of forms that are told in words. If there are more forms, the model sees the
/// properties alone.
const MAX_TOLD: usize = 20;

/// Maximum nesting of forms within each other, and of references at the top; deeper forms are
/// left out.
const MAX_DEPTH: usize = 8;

/// Makes `members`, the normalized schema of a tool's arguments, one object schema.
pub(super) fn make_one_object(members: &mut Map<String, Value>) {
    let definitions = ["$defs", "definitions"].map(|keyword| members.get(keyword).cloned().unwrap_or_default());
    Flattener { definitions }.flatten(members, MAX_DEPTH);
}

struct Flattener {
    /// Schemas that references at the top may lead to: `$defs`, and `definitions`.
    definitions: [Value; 2],
}

impl Flattener {
    fn flatten(&self, members: &mut Map<String, Value>, depth: usize) {
        let target = self.target(members);
        let all = members.remove("allOf");
        for schema in target.into_iter().chain(list(all)) {
            if let Some(part) = self.object(schema, depth) {
                add_required(members, required(&part).iter().copied());
                add_object(members, &part);
            }
        }
        for keyword in ["oneOf", "anyOf"] {
            let forms = list(members.remove(keyword)).filter_map(|schema| self.object(schema, depth));
            add_forms(members, &forms.collect::<Vec<_>>());
        }
        members.retain(|keyword, _| !REFUSED.contains(&&**keyword));
    }

    /// Takes the reference at the top, and returns the schema that it leads to.
    fn target(&self, members: &mut Map<String, Value>) -> Option<Value> {
        let reference = members.remove("$ref")?;
        let pointer = reference.as_str()?.strip_prefix("#/")?;
        let names = ["$defs/", "definitions/"];
        names.iter().zip(&self.definitions).find_map(|(keyword, schemas)| {
            let name = pointer.strip_prefix(keyword)?.replace("~1", "/").replace("~0", "~");
            schemas.get(&name).cloned()
        })
    }

    /// Returns a schema as the schema of one object; `None` if it describes anything else, which
    /// arguments cannot be.
    fn object(&self, schema: Value, depth: usize) -> Option<Map<String, Value>> {
        let Value::Object(mut members) = schema else {
            return None;
        };
        self.flatten(&mut members, depth.checked_sub(1)?);
        let is_object = match members.get("type") {
            None => members.contains_key("properties") || members.contains_key("required"),
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(kind) => kind == "object",
        };
        is_object.then_some(members)
    }
}

fn list(schemas: Option<Value>) -> impl Iterator<Item = Value> {
    match schemas {
        Some(Value::Array(schemas)) => schemas,
        _ => Vec::new(),
    }
    .into_iter()
}

/// Returns the names of the required properties.
fn required(schema: &Map<String, Value>) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}

fn add_required<'a>(members: &mut Map<String, Value>, names: impl Iterator<Item = &'a str>) {
    let mut all = required(members)
        .iter()
        .map(|name| Value::from(*name))
        .collect::<Vec<_>>();
    for name in names.map(Value::from) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    if !all.is_empty() {
        members.insert("required".to_owned(), all.into());
    }
}

/// Adds forms; a call has exactly one form. A member that all forms require is required, and
/// words tell the rest.
fn add_forms(members: &mut Map<String, Value>, forms: &[Map<String, Value>]) {
    let [first, others @ ..] = forms else { return };
    let common = required(first).into_iter();
    let common = common.filter(|name| others.iter().all(|form| required(form).contains(name)));
    add_required(members, common);
    forms.iter().for_each(|form| add_object(members, form));
    let told: Vec<_> = forms.iter().map(in_words).collect();
    if others.is_empty() || told.len() > MAX_TOLD || told.iter().all(|words| *words == told[0]) {
        return;
    }
    let told = format!("Give one of these: {}.", told.join("; "));
    let description = members.get("description").and_then(Value::as_str);
    let description = description.map_or_else(|| told.clone(), |text| format!("{text} {told}"));
    members.insert("description".to_owned(), description.into());
}

/// Returns the members that a form requires, such as `` `kind` "circle", `radius` (A circle.) ``.
fn in_words(form: &Map<String, Value>) -> String {
    let names = required(form).into_iter().map(|name| {
        let property = form
            .get("properties")
            .map_or(&Value::Null, |properties| &properties[name]);
        match values(property).as_deref() {
            Some([value]) => format!("`{name}` {value}"),
            _ => format!("`{name}`"),
        }
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let names = if names.is_empty() { "nothing".to_owned() } else { names };
    match form.get("description").and_then(Value::as_str) {
        Some(description) => format!("{names} ({})", description.trim_end_matches('.')),
        None => names,
    }
}

/// Adds the properties of `object`, in its order, after the properties of `members`.
fn add_object(members: &mut Map<String, Value>, object: &Map<String, Value>) {
    let Some(Value::Object(added)) = object.get("properties") else {
        return;
    };
    let added_order = property_order(added, object.get(ORDER).or_else(|| object.get("required")));
    let mut properties = match members.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let listed = members.get(ORDER).or_else(|| members.get("required"));
    let mut order: Vec<Value> = property_order(&properties, listed)
        .into_iter()
        .map(Value::from)
        .collect();
    for name in added_order {
        match properties.get_mut(name) {
            Some(property) => merge_property(property, &added[name]),
            None => {
                order.push(name.into());
                properties.insert(name.to_owned(), added[name].clone());
            }
        }
    }
    members.insert("properties".to_owned(), properties.into());
    members.insert(ORDER.to_owned(), order.into());
}

/// Makes `property` accept what `other` accepts, too.
fn merge_property(property: &mut Value, other: &Value) {
    if property == other {
        return;
    }
    if let (Some(mut all), Some(more)) = (values(property), values(other))
        && property["type"] == other["type"]
    {
        for value in more {
            if !all.contains(&value) {
                all.push(value);
            }
        }
        if let Value::Object(members) = property {
            members.remove("const");
            members.insert("enum".to_owned(), all.into());
        }
        return;
    }
    match property.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(forms) if !forms.contains(other) => forms.push(other.clone()),
        Some(_) => {}
        None => *property = json!({ "anyOf": [property.take(), other] }),
    }
}

/// Returns the values that a property lists, if it lists them.
fn values(property: &Value) -> Option<Vec<Value>> {
    match (property.get("const"), property.get("enum")) {
        (Some(only), _) => Some(vec![only.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        (None, _) => None,
    }
}
