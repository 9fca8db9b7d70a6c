//! Errors of settings. No message repeats a value: it might be a key in the wrong place.

use rockbot_core::BoxError;
use rockbot_core::chat::ModelSettingsError;
use rockbot_core::config::ConfigError;
use std::error::Error;
use std::fmt;

use crate::pricing::PriceTableError;

/// An error of the settings that a model client is built from. Its message names the setting and
/// the remedy.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LlmConfigError {
    /// There are no settings at all.
    #[error(
        "no model is configured: set OPENAI_API_KEY (and OPENAI_MODEL), or ANTHROPIC_API_KEY (and ANTHROPIC_MODEL), or \
         ROCKBOT_LLM__BALANCED__ENDPOINT and ROCKBOT_LLM__BALANCED__MODELID for a local server, or \
         ROCKBOT_LLM__PROVIDER=offline for the built-in model, which is not an LLM"
    )]
    NothingConfigured,
    /// The configuration cannot be read, has a setting of another type, or a name that is no setting.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The endpoint is no URL of a server.
    #[error(
        "{setting} must be a base URL such as https://api.openai.com/v1, with http:// or https:// and without a \
         user name or password"
    )]
    InvalidEndpoint {
        /// Name of the setting of the endpoint.
        setting: String,
    },
    /// The endpoint needs TLS, and this program is built without it.
    #[error(
        "{setting} begins with https://, and this program is built without TLS: enable the feature `tls` of `rockbot`, or \
         name a server with http://"
    )]
    NoTls {
        /// Name of the setting of the endpoint.
        setting: String,
    },
    /// The key holds something that no key holds.
    #[error("{setting} must be one word without blanks or line ends: copy the key again")]
    InvalidKey {
        /// Name of the setting of the key.
        setting: String,
    },
    /// The server needs a key and there is none.
    #[error("{setting} is not set: set it to the key of your account, or to any word if the server needs none")]
    NoKey {
        /// Name of the setting of the key.
        setting: String,
    },
    /// No server is set, and a key would send prompts to the provider's own.
    #[error(
        "{endpoint} is not set: set it to the base URL of your server, or set {key} to the key of an account at {home}"
    )]
    NoServer {
        /// Name of the setting of the endpoint.
        endpoint: String,
        /// Name of the setting of the key.
        key: String,
        /// The endpoint of the provider, which is asked when only a key is set.
        home: &'static str,
    },
    /// The provider is unknown.
    #[error("{setting} must be one of these: openai, openai-responses, anthropic, offline")]
    UnknownProvider {
        /// Name of the setting of the provider.
        setting: String,
    },
    /// Several settings cannot be used.
    #[error("{}", lines(errors))]
    Several {
        /// The errors, at least two.
        errors: Vec<Self>,
    },
    /// The model is not set.
    #[error("{setting} is not set: set it to the name of a model that the server knows")]
    NoModel {
        /// Name of the setting of the model.
        setting: String,
    },
    /// A model has only one of its two prices.
    #[error("{setting} is not set: a price needs both `Input` and `Output`, in US dollars for a million tokens")]
    NoPrice {
        /// Name of the setting of the price.
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
    /// A model setting has a value that no model takes.
    #[error(transparent)]
    ModelSettings(#[from] ModelSettingsError),
    /// There is no HTTP client on this machine.
    #[error("the HTTP client cannot be set up: {}", root_cause(&**cause))]
    NoHttpClient {
        /// Cause.
        cause: BoxError,
    },
}

impl LlmConfigError {
    /// Returns the errors of unknown providers and the error of the tier Balanced together; there is
    /// at least one.
    pub(crate) fn unknown_providers(unknown: Vec<Self>, balanced: Option<Self>) -> Self {
        // An unknown provider of Balanced is among the others already.
        let other = balanced.filter(|error| unknown.is_empty() || !matches!(error, Self::UnknownProvider { .. }));
        let mut errors: Vec<Self> = unknown.into_iter().chain(other).collect();
        match errors.len() {
            1 => errors.remove(0),
            _ => Self::Several { errors },
        }
    }
}

fn lines(errors: &[LlmConfigError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Returns the message of the innermost source: reqwest's own message says only which phase failed.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The message: a `main` that returns the error prints this.
impl fmt::Debug for LlmConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
