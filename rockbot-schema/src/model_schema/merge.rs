//! Merging of a schema into the schema that refers to it.

use serde_json::{Map, Value};

/// Keywords that describe a value without constraining it: the nearer one is the more precise.
const ANNOTATIONS: [&str; 4] = ["default", "deprecated", "description", "examples"];

/// Merges `inner` into `outer`, or adds it to `allOf` where both constrain the same in different
/// ways.
pub(super) fn merge(outer: &mut Map<String, Value>, inner: Map<String, Value>) {
    let differs = |(keyword, value): (&String, &Value)| {
        !ANNOTATIONS.contains(&&**keyword) && outer.get(keyword).is_some_and(|other| other != value)
    };
    if inner.iter().any(differs) {
        if let Value::Array(all) = outer.entry("allOf").or_insert_with(|| Value::Array(Vec::new())) {
            all.push(inner.into());
        }
        return;
    }
    for (keyword, value) in inner {
        outer.entry(keyword).or_insert(value);
    }
}

/// Removes the alternative `null`, and merges the only schema of a list into the schema that has
/// the list.
pub(super) fn merge_single(members: &mut Map<String, Value>) {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(schemas)) = members.get_mut(keyword) else {
            continue;
        };
        if keyword != "allOf" && !schemas.iter().all(is_only_null) {
            schemas.retain(|schema| !is_only_null(schema));
        }
        let is_single = matches!(schemas.as_slice(), [Value::Object(_)]);
        if is_single
            && let Some(Value::Array(schemas)) = members.remove(keyword)
            && let Some(Value::Object(only)) = schemas.into_iter().next()
        {
            merge(members, only);
        }
    }
}

/// Returns `true` if a schema accepts `null` alone.
pub(super) fn is_only_null(schema: &Value) -> bool {
    let is = |keyword: &str| schema.get(keyword).is_some_and(Value::is_null);
    schema["type"] == "null" || is("const")
}
