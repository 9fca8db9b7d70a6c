//! Tests of the parser: the corpus, properties of any text, and behaviour that the corpus cannot
//! express.

mod corpus;
mod hold_back;
mod parsing;
mod properties;

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{OfferedTool, TextCallParser};

/// The tools of all samples: names and schemas, in the order in which a model is offered them.
static TOOLS: LazyLock<Vec<(&str, Value)>> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    let tools = [
        ("Send-Mail", json!({})),
        ("add", json!({"a": number, "b": number})),
        (
            "calendar.create_event",
            json!({"title": text, "minutes": {"type": "integer"}}),
        ),
        ("get_weather", json!({"city": text, "days": {"type": "integer"}})),
        ("list_tasks", json!({})),
        ("math_hypot", json!({"x": number, "y": number})),
        ("now", json!({})),
        (
            "search",
            json!({"query": text, "limit": {"type": ["integer", "null"]}, "tags": {"type": "array"}}),
        ),
        (
            "write_file",
            json!({"path": text, "content": {"type": ["string", "null"]}}),
        ),
    ];
    let schema = |properties| json!({"type": "object", "properties": properties});
    tools
        .into_iter()
        .map(|(name, properties)| (name, schema(properties)))
        .collect()
});

fn offered() -> impl Iterator<Item = OfferedTool<'static>> {
    TOOLS
        .iter()
        .map(|(name, parameters)| OfferedTool::new(name, "Does something.", parameters))
}

fn parser() -> TextCallParser {
    TextCallParser::for_tools(offered())
}
