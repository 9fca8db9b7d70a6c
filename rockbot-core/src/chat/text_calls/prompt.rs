//! What a model without native tool calls is told: how to call, and what came of it.

use std::fmt::Write;

use super::super::{ChatMessage, ContentPart, Provenance, Role};
use crate::ToolName;
use crate::context::Trust;
use crate::tool::ToolView;

/// How to call tools in text, and which there are, for a system prompt. Empty when there is no tool.
///
/// The text depends on the tools alone and lists them in their order, so it keeps the provider's prompt cache
/// valid as long as the tools stay the same.
pub fn instructions(tools: &ToolView) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let mut text = String::from(HOW_TO_CALL);
    for entry in tools.entries() {
        let tool = entry.registration();
        let _ = write!(
            text,
            "\n\n### {}\n\n{}\n\nArguments, as a JSON Schema: {}",
            tool.name,
            tool.description.trim(),
            tool.parameters_schema
        );
    }
    text
}

const HOW_TO_CALL: &str = "\
## Tools

You can call tools. To call one, end your answer with these two lines, exactly so and outside of any code fence:

tool_call_name: NAME
tool_call_arguments: {\"argument\": \"value\"}

- The arguments are one JSON object; without any, write {}.
- To call several tools, write the two lines once for each.
- Write nothing after the last call. The result comes in the next message, as [Tool result for NAME]: …
- Never write a result yourself, and never say that you did something before you have its result.
- When no tool is needed, just answer; do not mention these lines.

The tools are:";

/// The result of a tool, as a message to a model without native tool calls.
///
/// It has the user's role, since such models know no other that could follow theirs; its provenance still says
/// that a tool wrote it.
///
/// ```
/// use rockbot_core::chat::{Role, text_calls};
///
/// let message = text_calls::result_message(&"get_weather".into(), "21 degrees");
/// assert_eq!(message.role, Role::User);
/// assert_eq!(message.text(), "[Tool result for get_weather]: 21 degrees");
/// ```
pub fn result_message(name: &ToolName, content: &str) -> ChatMessage {
    let provenance = Provenance {
        source: format!("tool:{name}").into(),
        trust: Trust::Untrusted,
    };
    let text = format!("[Tool result for {name}]: {content}");
    ChatMessage {
        content: vec![ContentPart { text, provenance }],
        ..ChatMessage::text_of(Role::User, String::new(), Provenance::TOOL)
    }
}
