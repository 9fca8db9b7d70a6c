//! The requested shape of an answer, as a tool whose arguments are the answer.
//!
//! The Messages API of the pinned version has no response format, but it makes a model call a
//! tool whose arguments fit a schema. So the shape becomes a tool behind the tools of the
//! request, the model must call it, and its arguments are the text of the answer. If the request
//! has tools of its own, the model may call them first.

use rockbot_core::chat::{ChatRequest, ModelSettings, OutputSchema, ToolChoice};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// The tool that stands for the shape of the answer.
#[derive(Debug, PartialEq)]
pub(super) struct ShapeTool {
    /// Name of the tool: the name of the shape, unless a tool of the request has it.
    pub(super) name: String,
    /// Schema of its arguments.
    pub(super) schema: Value,
    /// `true` if the answer is the member `value` of the arguments, which must be an object.
    is_wrapped: bool,
    /// `true` if no other tool can be called in its place.
    pub(super) is_only: bool,
}

#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
}

impl ShapeTool {
    /// Description of the tool for the model.
    pub(super) const DESCRIPTION: &'static str = "Gives the final answer. Call it once, when nothing else is left to do, with the whole answer as its arguments.";

    /// Returns the tool for the shape that `request` asks for with `settings`, if it asks for one.
    pub(super) fn of(request: &ChatRequest, settings: &ModelSettings) -> Option<Self> {
        let output = request.output.as_ref()?;
        let (schema, is_wrapped) = arguments_schema(output);
        Some(Self {
            name: free_name(request, output),
            schema,
            is_wrapped,
            is_only: request.tools.is_empty() || settings.tool_choice == Some(ToolChoice::None),
        })
    }

    /// Returns `true` if the pieces of its arguments are pieces of the answer's text.
    pub(super) fn is_streamed(&self) -> bool {
        self.is_only && !self.is_wrapped
    }

    /// Returns the text of the answer with these arguments. Malformed ones are returned as they are,
    /// for the caller to judge.
    pub(super) fn answer(&self, arguments: String) -> String {
        if !self.is_wrapped {
            return arguments;
        }
        match serde_json::from_str::<Wrapped<'_>>(&arguments) {
            Ok(wrapped) => wrapped.value.get().to_owned(),
            Err(_) => arguments,
        }
    }
}

fn free_name(request: &ChatRequest, output: &OutputSchema) -> String {
    let mut name = output.name.clone();
    while request.tools.names().any(|tool| *tool == name.as_str()) {
        name.insert_str(0, "answer_");
        name.truncate(64);
    }
    name
}

/// Returns the schema of the arguments, and whether it wraps the shape: arguments must be an
/// object, and their schema must state so at its top.
fn arguments_schema(output: &OutputSchema) -> (Value, bool) {
    let schema = &output.schema;
    let is_combined = ["anyOf", "oneOf", "allOf"]
        .iter()
        .any(|member| schema.get(member).is_some());
    if schema["type"] == "object" && !is_combined {
        return (schema.clone(), false);
    }
    let mut inner = schema.clone();
    let mut wrapper = Map::new();
    // References into these begin at the root of the schema.
    for definitions in ["$defs", "definitions"] {
        let moved = inner.as_object_mut().and_then(|inner| inner.remove(definitions));
        wrapper.extend(moved.map(|moved| (definitions.to_owned(), moved)));
    }
    wrapper.insert("type".into(), "object".into());
    wrapper.insert("properties".into(), json!({ "value": inner }));
    wrapper.insert("required".into(), json!(["value"]));
    (wrapper.into(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(schema: Value) -> ShapeTool {
        let output = OutputSchema::new("Answer", schema);
        let request = ChatRequest::default().with_output(output);
        ShapeTool::of(&request, &ModelSettings::new()).unwrap()
    }

    #[test]
    fn an_object_is_the_arguments_themselves() {
        let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
        let tool = shape(schema.clone());
        assert_eq!((&tool.schema, tool.is_streamed()), (&schema, true));
        assert_eq!(tool.answer(r#"{"x":1}"#.into()), r#"{"x":1}"#);
    }

    #[test]
    fn another_shape_is_a_member_of_the_arguments() {
        let tool = shape(json!({"type": "array", "items": {"$ref": "#/$defs/X"}, "$defs": {"X": {"type": "string"}}}));
        let expected = json!({
            "$defs": {"X": {"type": "string"}},
            "type": "object",
            "properties": {"value": {"type": "array", "items": {"$ref": "#/$defs/X"}}},
            "required": ["value"]
        });
        assert_eq!((&tool.schema, tool.is_streamed()), (&expected, false));
        assert_eq!(tool.answer(r#"{"value": ["a", 1]}"#.into()), r#"["a", 1]"#);
        assert_eq!(tool.answer(r#"{"valu"#.into()), r#"{"valu"#);
        assert!(shape(json!({"type": "object", "oneOf": []})).is_wrapped);
    }
}
