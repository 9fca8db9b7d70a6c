//! Tool results that a model hallucinated, and end-of-turn tokens.
//!
//! A model that goes on after its call hallucinates the tool's result. From there on nothing it
//! wrote is known to be true: neither the text nor further calls.

use crate::cursor::starts_with;

/// Markers of results that only a host writes. They count wherever a line starts with one.
const RESULTS: [&str; 19] = [
    "[Tool result for ",
    "<tool_response>",
    "<|tool_response>",
    "<tool_result>",
    "<tool_results>",
    "<tool_output>",
    "<function_result>",
    "<function_results>",
    "<function_response>",
    "<start_function_response>",
    "<|START_TOOL_RESULT|>",
    "[TOOL_RESULTS]",
    "[TOOL_RESULT]",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁output▁begin｜>",
    "<|observation|>",
    "<|start|>functions.",
    "<|start|> functions.",
    "```tool_output",
];

/// Markers that begin the turn of another role.
const TURNS: [&str; 9] = [
    "<|im_start|>",
    "<|start_header_id|>",
    "<|im_system|>",
    "<|START_OF_TURN_TOKEN|>",
    "<start_of_turn>",
    "<|start|>tool",
    "<|start|>user",
    "<|open|>message role=\"tool\"",
    "<|open|>message role=\"user\"",
];

/// Beginnings of lines that are a result only after a call, because prose has such lines, too.
const BEHIND_CALLS: [&str; 6] = [
    "Observation:",
    "tool_call_result",
    "tool_result:",
    "Tool result",
    "Tool output",
    "Function result",
];

const ENDS: [&str; 20] = [
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
    "<|eom|>",
    "<|eot|>",
    "<|endoftext|>",
    "<｜end▁of▁sentence｜>",
    "<end_of_turn>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|end_of_msg|>",
    "<turn|>",
    "<|stop|>",
    "<|role_end|>",
    "<|end_message|>",
    "<|content_model_end_sampling|>",
    "</s>",
];

/// Returns the markers that always begin a result.
pub(super) fn openers() -> impl Iterator<Item = &'static str> {
    RESULTS.into_iter().chain(TURNS)
}

/// Returns `true` if the line begins a result. Prose about the markers does not: it continues in
/// words.
pub(super) fn begins(line: &str) -> bool {
    let token = openers().find(|token| starts_with(line, token));
    token.is_some_and(|token| {
        let head: String = line[token.len()..].chars().take(200).collect();
        match token {
            "[Tool result for " => head.contains("]:"),
            _ if TURNS.contains(&token) || token == "```tool_output" => true,
            _ => !head.starts_with(' ') || head.trim_start().starts_with(['{', '[', '"']),
        }
    })
}

/// Returns `true` if the line begins a result, given that a call stands before it.
pub(super) fn begins_behind_calls(line: &str) -> bool {
    begins(line) || BEHIND_CALLS.iter().any(|token| starts_with(line, token))
}

/// Returns the end-of-turn token at the start of `text`.
pub(super) fn end_of_turn(text: &str) -> Option<&'static str> {
    ENDS.into_iter().find(|token| text.starts_with(token))
}

/// Returns the length of `text` without trailing white space and end-of-turn tokens.
pub(super) fn length_without_end(text: &str) -> usize {
    let mut rest = text.trim_end();
    while let Some(shorter) = ENDS.iter().find_map(|token| rest.strip_suffix(token)) {
        rest = shorter.trim_end();
    }
    rest.len()
}
