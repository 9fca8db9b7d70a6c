//! The dialect of the Responses API, as the transport sees it.

use crate::http::{Dialect, read_error};

/// Path of responses below the base URL.
pub(super) const RESPONSES_PATH: &str = "responses";

/// The dialect of OpenAI's Responses API.
pub(super) const RESPONSES: Dialect = Dialect {
    api: "an API with OpenAI's Responses",
    provider: "openai",
    example: "https://api.openai.com/v1",
    call_paths: &[RESPONSES_PATH, "chat/completions"],
    key_header: "authorization",
    key_prefix: "Bearer ",
    headers: &[],
    models_path: "models",
    models_query: None,
    read_error,
};

/// Beginnings of the names of OpenAI's models that do not reason, all of them from before
/// reasoning models. The API refuses to encrypt the reasoning of these models.
const WITHOUT_REASONING: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-"];

/// Returns `true` if `model` may reason, with a vendor in front of its name, as gateways write
/// it, or without.
pub(super) fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let is_known_not_to = WITHOUT_REASONING.iter().any(|start| name.starts_with(start));
    !is_known_not_to && !name.contains("-chat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_do_not_reason_are_known_by_their_names() {
        for model in [
            "gpt-5",
            "gpt-5.4-mini",
            "o4-mini",
            "openai/gpt-oss-20b",
            "grok-4",
            "ft:o4-mini:us",
        ] {
            assert!(may_reason(model), "{model}");
        }
        for model in [
            "gpt-4.1-mini",
            "openai/gpt-4o",
            "ft:gpt-4.1:us",
            "chatgpt-4o-latest",
            "gpt-5-chat-latest",
        ] {
            assert!(!may_reason(model), "{model}");
        }
    }
}
