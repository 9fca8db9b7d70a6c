//! Checks of the reader: the corpus, properties, and what the corpus cannot say; and of the client around it.

mod client;
mod corpus;
mod hold_back;
mod properties;
mod reading;

use serde_json::json;

use super::TextCalls;
use crate::testing::mock_tool;
use crate::tool::{InMemoryToolRegistry, Owner, Tool, ToolRegistry};

/// The tools of all samples, from a registry as the host has it.
fn tools() -> InMemoryToolRegistry {
    let registry = InMemoryToolRegistry::new();
    let owner = Owner::new("test");
    let text = json!({"type": "string"});
    let number = json!({"type": "number"});
    for (name, properties) in [
        ("get_weather", json!({"city": text, "days": {"type": "integer"}})),
        ("add", json!({"a": number, "b": number})),
        (
            "search",
            json!({"query": text, "limit": {"type": ["integer", "null"]}, "tags": {"type": "array"}}),
        ),
        (
            "write_file",
            json!({"path": text, "content": {"type": ["string", "null"]}}),
        ),
        ("now", json!({})),
        ("list_tasks", json!({})),
        ("Send-Mail", json!({})),
    ] {
        let mut tool: Tool = mock_tool(name).0;
        tool.registration.parameters_schema = json!({"type": "object", "properties": properties});
        registry.register(&owner, tool).unwrap();
    }
    registry
}

fn calls() -> TextCalls {
    TextCalls::of(tools().snapshot().view())
}
