//! Reasoning blocks, which some servers leave in the text of an answer.

use crate::cursor::starts_with;

/// Opening and closing tokens of reasoning blocks.
pub(super) const THOUGHTS: [(&str, &str); 13] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<mm:think>", "</mm:think>"),
    ("<seed:think>", "</seed:think>"),
    ("<ifm|think>", "</ifm|think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|thought_start|>", "<|thought_end|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought", "<channel|>"),
    ("[THINK]", "[/THINK]"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
];

/// Returns the token that closes the reasoning block that a line opens.
pub(super) fn opened_by(line: &str) -> Option<&'static str> {
    THOUGHTS
        .into_iter()
        .find(|(open, _)| starts_with(line, open))
        .map(|(_, close)| close)
}

/// Returns the token at the start of `text` that closes a reasoning block.
pub(super) fn closed_by(text: &str) -> Option<&'static str> {
    THOUGHTS
        .into_iter()
        .map(|(_, close)| close)
        .find(|close| text.starts_with(close))
}

/// Returns the offset behind the reasoning that an answer begins with; zero without any. The
/// opening token may be missing, because many templates write it into the prompt.
pub(super) fn end(text: &str) -> usize {
    let mut end = 0;
    loop {
        let rest = text[end..].trim_start();
        let Some(close) = opened_by(rest) else { break };
        let Some(length) = rest.find(close) else { return end };
        end = text.len() - rest.len() + length + close.len();
    }
    if end > 0 {
        return end;
    }
    let closes = THOUGHTS
        .iter()
        .filter_map(|(_, close)| Some((text.find(close)?, close.len())));
    // A token in code is written about.
    let (at, length) = closes
        .min()
        .filter(|(at, _)| !text[..*at].contains(['`', '~']))
        .unwrap_or_default();
    at + length
}
