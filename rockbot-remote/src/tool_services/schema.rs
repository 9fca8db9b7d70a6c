//! The arguments of a descriptor as a JSON Schema for the model.

use serde_json::{Map, Value, json};

use super::descriptor::Argument;

/// Returns the schema of an object with these arguments.
///
/// The types of JSON Schema are taken as they are. A descriptor's type is free text, so any other
/// type becomes a text, and is named in the description.
pub(super) fn schema(arguments: &[Argument]) -> Value {
    let mut properties = Map::new();
    for argument in arguments {
        properties.insert(argument.name.clone(), property(argument));
    }
    let required: Vec<_> = arguments
        .iter()
        .filter(|argument| argument.required)
        .map(|argument| argument.name.as_str())
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn property(argument: &Argument) -> Value {
    let kind = argument.kind.as_str();
    let mut description = argument.description.clone();
    let mut property = match kind {
        "string" | "number" | "integer" | "boolean" | "object" => json!({"type": kind}),
        // Some servers refuse a list without the type of its elements.
        "array" => json!({"type": "array", "items": {}}),
        other => {
            description = match description.as_str() {
                "" => other.to_owned(),
                text => format!("{text} ({other})"),
            };
            json!({"type": "string"})
        }
    };
    if !description.is_empty() {
        property["description"] = json!(description);
    }
    property
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(name: &str, kind: &str, required: bool) -> Argument {
        Argument {
            name: name.to_owned(),
            kind: kind.to_owned(),
            description: format!("The {name}."),
            required,
        }
    }

    #[test]
    fn types_of_json_are_kept_and_others_are_texts() {
        let arguments = [
            argument("topic", "string", true),
            argument("count", "number", true),
            argument("tags", "array", false),
            argument("day", "date", false),
        ];
        let expected = json!({
            "type": "object",
            "properties": {
                "topic": {"type": "string", "description": "The topic."},
                "count": {"type": "number", "description": "The count."},
                "tags": {"type": "array", "items": {}, "description": "The tags."},
                "day": {"type": "string", "description": "The day. (date)"},
            },
            "required": ["topic", "count"],
        });
        assert_eq!(schema(&arguments), expected);
        assert_eq!(schema(&[]), json!({"type": "object", "properties": {}}));
    }
}
