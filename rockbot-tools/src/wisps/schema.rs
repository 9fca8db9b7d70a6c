//! The description of `spawn_wisps` for models.

use serde_json::{Value, json};

pub(super) const DESCRIPTION: &str = "Runs fixed lists of steps (tool calls, and questions to a cheap model) side by side, waits for \
    all of them, and returns what each brought. Much cheaper than calling the tools one by one.";

/// Returns the schema of the arguments. The parser takes other forms, too.
pub(super) fn schema() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let on_failure = json!({
        "type": "object",
        "description": "What happens when the step fails; by default the wisp ends.",
        "properties": {
            "action": {"type": "string", "enum": ["abort", "skip_to"]},
            "skip_to": text("Id of the later step to go on with."),
        },
    });
    let step = json!({
        "type": "object",
        "properties": {
            "id": text("Id of the step, its own in the wisp."),
            "mode": {"type": "string", "enum": ["Direct", "Llm"]},
            "gateway": {
                "type": "string",
                "enum": ["Mcp", "A2A", "Script", "Web"],
                "description": "Direct: the way to the tool; none for a tool by its name.",
            },
            "server": text("Mcp: the server."),
            "tool": text("Direct: the tool."),
            "params": {
                "type": "object",
                "description": "Direct: the arguments. `{{steps.ID.result}}` in a text is the result of an earlier step.",
            },
            "language": text("Script: the language, `python` by default."),
            "agent": text("A2A: the agent."),
            "skill": text("A2A: the skill."),
            "message": text("A2A: the message."),
            "timeout_minutes": {"type": "integer", "description": "A2A: the time limit."},
            "prompt": text("Llm: the complete task."),
            "input_from": text("Llm: what the model reads; by default all earlier results."),
            "output_to": text("A name for the output."),
            "on_failure": on_failure,
        },
        "required": ["id", "mode"],
    });
    let definition = json!({
        "type": "object",
        "properties": {
            "description": text("What the wisp does, in a few words."),
            "tools": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Further tools of the Llm steps: names of tools or of MCP servers.",
            },
            "steps": {"type": "array", "items": step, "minItems": 1},
        },
        "required": ["description", "steps"],
    });
    json!({
        "type": "object",
        "properties": {
            "definitions": {"type": "array", "items": definition, "minItems": 1, "description": "The wisps."},
        },
        "required": ["definitions"],
    })
}
