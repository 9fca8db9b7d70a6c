//! Anthropic's dialect, as the transport sees it.

use crate::http::{Dialect, read_error};

/// Path of messages below the base URL.
pub(super) const MESSAGES_PATH: &str = "v1/messages";

/// Name of the header that carries the version of the API.
pub(super) const VERSION_HEADER: &str = "anthropic-version";

/// The version of the API that is sent unless another one is set. Every server that speaks this
/// dialect knows it, and it still accepts a temperature.
pub(super) const DEFAULT_VERSION: &str = "2023-06-01";

/// The first version of the API that refuses a temperature. Versions are dates, so they compare
/// as texts.
pub(super) const FIRST_WITHOUT_TEMPERATURE: &str = "2026-10-21";

/// The dialect of Anthropic's Messages API.
pub(crate) const ANTHROPIC: Dialect = Dialect {
    api: "Anthropic's Messages API",
    provider: "anthropic",
    example: "https://api.anthropic.com",
    // Anthropic's own tools take a base URL without the version segment; other tools take a base URL
    // with it.
    call_paths: &[MESSAGES_PATH, "v1"],
    key_header: "x-api-key",
    key_prefix: "",
    headers: &[(VERSION_HEADER, DEFAULT_VERSION)],
    models_path: "v1/models",
    models_query: Some("limit=1000"),
    read_error,
};
