//! When something of a conversation is left out.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// When something of a conversation is left out, so that it costs less and the model takes it.
///
/// What is left out of a tool's result is kept in the host's working memory, and the model is told how to read it.
/// Whatever stands here: a request that the model refuses as too long is shortened and sent once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ContextEconomy {
    /// How long a result may be, in bytes; a longer one loses its middle. `None`, the default, is as long as
    /// [`large results`](crate::AgentHostBuilder::large_results) leave it. A result that is only a little longer stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result_len: Option<usize>,
    /// How many tokens a request may have, roughly; of longer ones something is left out. Default `None`. Set it for
    /// models that cut what is too long without a word, as Ollama does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watermark: Option<u64>,
    /// How much of what stays of a result is its beginning, in percent; the rest is its end. Default 60.
    pub head_percent: u8,
    /// For how long originals are kept. Default one hour.
    pub ttl: Duration,
    /// How many tokens the model's window has, as it said when it refused an earlier turn's request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<u64>,
}

impl Default for ContextEconomy {
    fn default() -> Self {
        Self {
            max_result_len: None,
            watermark: None,
            head_percent: 60,
            ttl: Duration::from_secs(60 * 60),
            window: None,
        }
    }
}

impl ContextEconomy {
    /// With requests of at most about `tokens`.
    #[must_use]
    pub fn with_watermark(mut self, tokens: u64) -> Self {
        self.watermark = Some(tokens);
        self
    }

    /// With results of at most about `bytes`.
    #[must_use]
    pub fn with_max_result_len(mut self, bytes: usize) -> Self {
        self.max_result_len = Some(bytes);
        self
    }
}
