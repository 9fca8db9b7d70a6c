//! What a client can be told before it is built.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rockbot_core::{ExposeSecret, IdSource, RandomIds, Secret};

use super::connection::{Connection, Limits};
use super::endpoint::{CHAT, EMBEDDINGS, base_url, is_loopback, provider_of, shown};
use super::report::{Reporter, SettingNames};
use super::{OpenAiChat, OpenAiEmbeddings};
use crate::gateway::RetryPolicy;
use crate::settings::LlmConfigError;

/// Builds an [`OpenAiChat`].
pub type OpenAiChatBuilder = OpenAiBuilder<ChatOptions>;

/// Builds an [`OpenAiEmbeddings`].
pub type OpenAiEmbeddingsBuilder = OpenAiBuilder<EmbeddingOptions>;

/// Builds a client of an OpenAI-compatible server. The order of the calls does not matter.
#[must_use]
pub struct OpenAiBuilder<O> {
    endpoint: String,
    model: String,
    api_key: Option<Secret>,
    headers: Vec<(String, Secret, bool)>,
    connect_timeout: Duration,
    pub(super) limits: Limits,
    pub(super) retry: RetryPolicy,
    names: SettingNames,
    options: O,
}

/// What only a client that chats can be told.
#[derive(Debug)]
pub struct ChatOptions {
    ids: Arc<dyn IdSource>,
}

/// What only a client of embeddings can be told.
#[derive(Debug)]
pub struct EmbeddingOptions {
    batch: usize,
}

impl<O> fmt::Debug for OpenAiBuilder<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiBuilder")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl<O> OpenAiBuilder<O> {
    fn with(endpoint: String, model: String, options: O) -> Self {
        Self {
            endpoint,
            model,
            api_key: None,
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            limits: Limits::default(),
            retry: RetryPolicy {
                retries: 1,
                ..RetryPolicy::default()
            },
            names: SettingNames::default(),
            options,
        }
    }

    /// Sends this key as `Authorization: Bearer …`. Without one no such header is sent.
    pub fn api_key(mut self, key: Secret) -> Self {
        self.api_key = Some(key);
        self
    }

    /// Sends this header with each request, such as OpenRouter's `X-Title`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into().into(), false));
        self
    }

    /// Sends this header with each request and never shows its value, such as Azure's `api-key`.
    pub fn secret_header(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.headers.push((name.into(), value, true));
        self
    }

    /// How long a call may take in all, its retries included. Unless set, 10 minutes for an answer, and 1 minute for
    /// embeddings.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limits.call = limit;
        self
    }

    /// How long connecting may take. 5 seconds unless set.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How often a call is tried again when that may help. Once unless set. Under a [`Retry`](crate::Retry) it is not:
    /// attempts must not multiply.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retry.retries = retries;
        self
    }

    /// The longest wait before a retry, whatever the server asks for. 30 seconds unless set.
    pub fn max_retry_wait(mut self, limit: Duration) -> Self {
        self.retry.max_retry_after = limit;
        self.retry.max_back_off = self.retry.max_back_off.min(limit);
        self
    }

    /// How errors call the settings of this client, so that they can say what to set.
    pub fn setting_names(mut self, names: SettingNames) -> Self {
        self.names = names;
        self
    }

    /// Everything but what is asked, and where.
    fn connection(&self) -> Result<Connection, LlmConfigError> {
        let base = base_url(&self.endpoint).ok_or_else(|| LlmConfigError::InvalidEndpoint {
            setting: self.names.endpoint.clone().into_owned(),
        })?;
        if self.model.trim().is_empty() {
            return Err(LlmConfigError::NoModel {
                setting: self.names.model.clone().into_owned(),
            });
        }
        let secret_headers = self.headers.iter().filter(|(_, _, is_secret)| *is_secret);
        let secrets = self.api_key.iter().chain(secret_headers.map(|(_, value, _)| value));
        Ok(Connection {
            http: http_client(&base, self.connect_timeout)?,
            headers: self.header_map()?,
            limits: self.limits,
            retry: self.retry,
            report: Reporter {
                endpoint: shown(&base),
                model: self.model.as_str().into(),
                names: self.names.clone(),
                secrets: secrets.cloned().collect(),
            },
            base,
        })
    }

    fn header_map(&self) -> Result<HeaderMap, LlmConfigError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.api_key {
            let bearer = format!("Bearer {}", key.expose_secret());
            let invalid = || LlmConfigError::InvalidKey {
                setting: self.names.api_key.clone().into_owned(),
            };
            if !is_key(key.expose_secret()) {
                return Err(invalid());
            }
            headers.insert(AUTHORIZATION, secret_value(&bearer).ok_or_else(invalid)?);
        }
        for (name, value, _) in &self.headers {
            let invalid = || LlmConfigError::InvalidHeader { name: name.clone() };
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
            headers.insert(key, secret_value(value.expose_secret()).ok_or_else(invalid)?);
        }
        Ok(headers)
    }
}

impl OpenAiChatBuilder {
    pub(super) fn new(endpoint: String, model: String) -> Self {
        let ids = Arc::new(RandomIds);
        Self::with(endpoint, model, ChatOptions { ids })
    }

    /// How long a streamed answer may pause between two pieces. 2 minutes unless set. The first piece may take
    /// as long as the call: some models think before they speak.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.limits.idle = limit;
        self
    }

    /// Where tool calls get their ids when the server gives them none.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.options.ids = ids;
        self
    }

    /// The client.
    ///
    /// # Errors
    ///
    /// Fails when the endpoint is no http(s) URL, the model is empty, or a key or header cannot be sent.
    pub fn build(self) -> Result<OpenAiChat, LlmConfigError> {
        let connection = self.connection()?;
        Ok(OpenAiChat {
            ids: self.options.ids,
            provider: provider_of(&connection.base).into(),
            url: connection.url(CHAT),
            connection,
        })
    }
}

impl OpenAiEmbeddingsBuilder {
    pub(super) fn new(endpoint: String, model: String) -> Self {
        let builder = Self::with(endpoint, model, EmbeddingOptions { batch: 32 });
        builder.timeout(Duration::from_secs(60))
    }

    /// How many texts are sent in one request at most. 32 unless set, which small servers take, too.
    pub fn batch(mut self, texts: NonZeroUsize) -> Self {
        self.options.batch = texts.get();
        self
    }

    /// The client.
    ///
    /// # Errors
    ///
    /// Fails when the endpoint is no http(s) URL, the model is empty, or a key or header cannot be sent.
    pub fn build(self) -> Result<OpenAiEmbeddings, LlmConfigError> {
        let connection = self.connection()?;
        Ok(OpenAiEmbeddings {
            batch: self.options.batch,
            dimension: OnceLock::new(),
            url: connection.url(EMBEDDINGS),
            connection,
        })
    }
}

/// Whether `text` can be a key: no server hands out keys with blanks, copying by hand does.
pub(crate) fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn http_client(base: &Url, connect_timeout: Duration) -> Result<reqwest::Client, LlmConfigError> {
    let client = reqwest::Client::builder()
        .tcp_nodelay(true)
        .connect_timeout(connect_timeout)
        .pool_max_idle_per_host(512)
        // A redirect would drop the body or take the key elsewhere.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("rockbot/", env!("CARGO_PKG_VERSION")));
    let client = if is_loopback(base) { client.no_proxy() } else { client };
    client.build().map_err(|source| LlmConfigError::NoHttpClient { source })
}
