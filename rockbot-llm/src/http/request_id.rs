//! The provider's name for a request, which its support asks for.

use reqwest::header::HeaderMap;

/// Headers that carry it: OpenAI's, Anthropic's, Azure's and OpenRouter's.
const HEADERS: [&str; 4] = ["x-request-id", "request-id", "apim-request-id", "x-generation-id"];

/// A longer text is no name.
const MAX_LEN: usize = 128;

/// Reads the name from the headers of a response.
pub(super) fn request_id(headers: &HeaderMap) -> Option<&str> {
    let values = HEADERS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    values.into_iter().find(|id| is_request_id(id))
}

/// Returns `true` if `text` may be shown as a name: one short word.
pub(super) fn is_request_id(text: &str) -> bool {
    (1..=MAX_LEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
