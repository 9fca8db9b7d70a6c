//! What can be wrong with the settings. No message repeats a value: it might be a key in the wrong place.

use rockbot_core::config::ConfigError;
use std::fmt;

use crate::pricing::PriceTableError;

/// Settings that a model client cannot be built from.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LlmConfigError {
    /// There are no settings at all.
    #[error(
        "no model is configured: set OPENAI_API_KEY (and OPENAI_MODEL), or ROCKBOT_LLM__BALANCED__ENDPOINT and \
         ROCKBOT_LLM__BALANCED__MODELID for a local server"
    )]
    NothingConfigured,
    /// The configuration cannot be read, has a setting of another type, or a variable of ours that is no setting.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The endpoint is no URL of a server.
    #[error(
        "{setting} must be a base URL such as https://api.openai.com/v1, with http:// or https:// and without a \
         user name or password"
    )]
    InvalidEndpoint {
        /// Where the endpoint is set.
        setting: String,
    },
    /// The key holds something that no key holds.
    #[error("{setting} must be one word without blanks or line ends: copy the key again")]
    InvalidKey {
        /// Where the key is set.
        setting: String,
    },
    /// The server needs a key and there is none.
    #[error("{setting} is not set: set it to the key of your account, or to any word if the server needs none")]
    NoKey {
        /// Where the key would be set.
        setting: String,
    },
    /// Nobody said which model.
    #[error("{setting} is not set: set it to the name of a model that the server knows")]
    NoModel {
        /// Where the model would be set.
        setting: String,
    },
    /// A model has only one of its two prices.
    #[error("{setting} is not set: a price needs both `Input` and `Output`, in US dollars for a million tokens")]
    NoPrice {
        /// Where the price would be set.
        setting: String,
    },
    /// The file of prices cannot be used.
    #[error(transparent)]
    Prices(#[from] PriceTableError),
    /// A header cannot be sent.
    #[error("the header `{name}` cannot be sent: its name or its value has characters that no header has")]
    InvalidHeader {
        /// The header's name.
        name: String,
    },
    /// There is no HTTP client on this machine.
    #[error("the HTTP client cannot be set up: {source}")]
    NoHttpClient {
        /// Why not.
        source: reqwest::Error,
    },
}

/// The message: a `main` that returns the error prints this.
impl fmt::Debug for LlmConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
