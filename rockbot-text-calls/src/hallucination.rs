//! Results that a model wrote itself, and the tokens that end a turn.
//!
//! A model that goes on after its call imagines what the tool answered. From there on nothing it wrote is
//! known to be true: neither the text nor further calls.

use crate::cursor::starts_with;

/// What only a host writes. Counts wherever a line starts with it.
const RESULTS: [&str; 17] = [
    "[Tool result for ",
    "<tool_response>",
    "<|tool_response>",
    "<tool_result>",
    "<tool_results>",
    "<tool_output>",
    "<function_result>",
    "<function_results>",
    "<function_response>",
    "<|START_TOOL_RESULT|>",
    "[TOOL_RESULTS]",
    "[TOOL_RESULT]",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁output▁begin｜>",
    "<|observation|>",
    "<|start|>functions.",
    "```tool_output",
];

/// What begins the turn of somebody else.
const TURNS: [&str; 5] = [
    "<|im_start|>",
    "<|start_header_id|>",
    "<|im_system|>",
    "<|START_OF_TURN_TOKEN|>",
    "<start_of_turn>",
];

/// What is a result only behind a call: people write such lines, too.
const BEHIND_CALLS: [&str; 6] = [
    "Observation:",
    "tool_call_result",
    "tool_result:",
    "Tool result",
    "Tool output",
    "Function result",
];

const ENDS: [&str; 14] = [
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
    "<|endoftext|>",
    "<｜end▁of▁sentence｜>",
    "<end_of_turn>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|end_of_msg|>",
    "<turn|>",
    "</s>",
];

/// What begins a result for sure.
pub(super) fn openers() -> impl Iterator<Item = &'static str> {
    RESULTS.into_iter().chain(TURNS)
}

/// Whether a line that starts like this is a result. Prose about the tokens is not: it goes on in words.
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

/// Whether a line that starts like this is a result when a call stands before it.
pub(super) fn begins_behind_calls(line: &str) -> bool {
    begins(line) || BEHIND_CALLS.iter().any(|token| starts_with(line, token))
}

/// The token at the start of `text` that ends a turn.
pub(super) fn end_of_turn(text: &str) -> Option<&'static str> {
    ENDS.into_iter().find(|token| text.starts_with(token))
}

/// The length of `text` without space and ends of turns behind it.
pub(super) fn length_without_end(text: &str) -> usize {
    let mut rest = text.trim_end();
    while let Some(shorter) = ENDS.iter().find_map(|token| rest.strip_suffix(token)) {
        rest = shorter.trim_end();
    }
    rest.len()
}
