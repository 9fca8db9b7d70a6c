//! Texts for a model without native tool calls: instructions for calls, and the results of calls.

use std::fmt::Write;

use crate::tools::OfferedTool;

/// Returns the section of a system prompt that teaches how to call tools in text and lists the
/// tools.
///
/// Empty without tools. The text depends on `tools` alone and keeps their order, so that the
/// provider's prompt cache stays valid as long as the tools stay the same.
pub fn instructions<'a>(tools: impl IntoIterator<Item = OfferedTool<'a>>) -> String {
    let mut text = String::new();
    for tool in tools {
        if text.is_empty() {
            text.push_str(HOW_TO_CALL);
        }
        let name = tool.name;
        let description = tool.description.trim();
        let _ = write!(text, "\n\n### {name}\n\n{description}\n\nArguments, as a JSON Schema: ");
        match tool.shown_parameters {
            Some(json) => text.push_str(json),
            None => {
                let _ = write!(text, "{}", tool.parameters);
            }
        }
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

/// Returns a call in the form that [`instructions`] teaches, for the history that a model is shown.
///
/// ```
/// use rockbot_text_calls::call_text;
///
/// let text = call_text("get_weather", r#"{"city":"Paris"}"#);
/// assert_eq!(text, "tool_call_name: get_weather\ntool_call_arguments: {\"city\":\"Paris\"}");
/// ```
pub fn call_text(name: &str, arguments: &str) -> String {
    format!("tool_call_name: {name}\ntool_call_arguments: {arguments}")
}

/// Returns the result of a call in the form that [`instructions`] announces.
///
/// Send it with the user's role, because models without native tool calls know no other role that
/// may follow theirs. `content` is untrusted text and stays behind the label; a model that writes
/// the label itself is detected, see
/// [`TextAnswer::hallucinated_from`](crate::TextAnswer::hallucinated_from).
///
/// ```
/// use rockbot_text_calls::result_text;
///
/// assert_eq!(result_text("get_weather", "21 degrees"), "[Tool result for get_weather]: 21 degrees");
/// ```
pub fn result_text(name: &str, content: &str) -> String {
    format!("[Tool result for {name}]: {content}")
}
