//! Recognition of context overflows. Providers have no common code for a request that is larger
//! than the context window, so their wordings are data here; rate limits, which mention tokens
//! too, are told apart.

use rockbot_core::chat::Overflow;

/// Codes and types of overflows.
const CODES: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "request_too_large",
    "model_context_window_exceeded",
];

/// Wordings of overflows. All parts of a row must occur in the text.
const WORDINGS: &[&[&str]] = &[
    // OpenAI, Azure, OpenRouter, vLLM, Mistral.
    &["maximum context length"],
    &["exceeds the context window"],
    &["context length exceeded"],
    &["context_length_exceeded"],
    // vLLM.
    &["max_tokens", "is too large"],
    &["max_completion_tokens", "is too large"],
    &["maximum model length"],
    // Anthropic.
    &["prompt is too long"],
    &["input length", "exceed context limit"],
    // Bedrock.
    &["input is too long for requested model"],
    // Google.
    &["input token count", "exceeds the maximum number of tokens"],
    // xAI.
    &["maximum prompt length is"],
    // Groq.
    &["reduce the length of the messages"],
    // Mistral.
    &["too large for model with", "context length"],
    // GitHub Copilot.
    &["token", "exceeds the limit of"],
    // llama.cpp.
    &["exceeds the available context size"],
    &["is too large to process", "physical batch size"],
    // LM Studio.
    &["greater than the context length"],
    // MiniMax.
    &["context window exceeds limit"],
    // Kimi.
    &["exceeded model token limit"],
];

/// Wordings of rate limits, which look alike.
const LOOK_ALIKES: &[&str] = &[
    "rate limit",
    "rate_limit",
    "ratelimit",
    "quota",
    "tokens per min",
    "per minute",
    "per day",
    "per hour",
    "(tpm)",
    "(tpd)",
    "too many requests",
    "throttl",
];

/// Words just before the size of the window.
const LIMIT_AFTER: &[&str] = &[
    "maximum context length is",
    "maximum model length of",
    "maximum number of tokens allowed",
    " >",
    "maximum prompt length is",
    "too large for model with",
    "exceeds the limit of",
    "available context size",
    "current batch size:",
    "model token limit:",
];

/// Words just before the size of the request.
const ASKED_AFTER: &[&str] = &[
    "resulted in",
    "you requested about",
    "you requested",
    "(length",
    "prompt is too long:",
    "exceed context limit:",
    "input token count",
    "request contains",
    "prompt contains",
    "prompt token count of",
];

/// Reads the sizes of window and request from the lower-case `text` of an overflow.
pub(super) fn sizes(text: &str) -> Overflow {
    let after = |words: &[&str]| words.iter().find_map(|words| number_after(text, words));
    Overflow::new(after(LIMIT_AFTER), after(ASKED_AFTER))
}

/// Reads the number that follows `words`, with nothing but blanks and a bracket between them.
fn number_after(text: &str, words: &str) -> Option<u64> {
    let (_, rest) = text.split_once(words)?;
    let rest = rest.trim_start_matches([' ', '(']);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Returns `true` if an error with this lower-case text and these codes is an overflow.
pub(super) fn is_overflow(text: &str, codes: [&str; 2]) -> bool {
    if codes.iter().any(|code| CODES.contains(code)) {
        return true;
    }
    let is_said = |wording: &&[&str]| wording.iter().all(|part| text.contains(part));
    WORDINGS.iter().any(is_said) && !is_rate(text, codes)
}

/// Returns `true` if the lower-case text or the codes name a rate limit.
pub(super) fn is_rate(text: &str, codes: [&str; 2]) -> bool {
    LOOK_ALIKES
        .iter()
        .any(|part| text.contains(part) || codes.iter().any(|code| code.contains(part)))
}
