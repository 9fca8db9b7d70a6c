//! OpenAI's dialect, as the transport sees it.

use crate::http::{Dialect, read_error};

/// Path of chat completions below the base URL.
pub(super) const CHAT_PATH: &str = "chat/completions";

/// Path of embeddings below the base URL.
pub(super) const EMBEDDINGS_PATH: &str = "embeddings";

/// The dialect that OpenAI-compatible servers speak.
pub(crate) const OPENAI: Dialect = Dialect {
    api: "an OpenAI-compatible API",
    provider: "openai",
    example: "https://api.openai.com/v1",
    call_paths: &[CHAT_PATH, EMBEDDINGS_PATH],
    key_header: "authorization",
    key_prefix: "Bearer ",
    headers: &[],
    models_path: "models",
    models_query: None,
    read_error,
};
