//! What a client can be told before it is built.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rockbot_core::{ExposeSecret, IdSource, RandomIds, Secret};

use super::report::{Reporter, SettingNames};
use super::{Limits, OpenAiChat};
use crate::gateway::RetryPolicy;
use crate::settings::LlmConfigError;

/// Builds an [`OpenAiChat`]. The order of the calls does not matter.
#[must_use]
pub struct OpenAiChatBuilder {
    endpoint: String,
    model: String,
    api_key: Option<Secret>,
    headers: Vec<(String, Secret, bool)>,
    connect_timeout: Duration,
    pub(super) limits: Limits,
    pub(super) retry: RetryPolicy,
    ids: Arc<dyn IdSource>,
    names: SettingNames,
}

impl fmt::Debug for OpenAiChatBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiChatBuilder")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl OpenAiChatBuilder {
    pub(super) fn new(endpoint: String, model: String) -> Self {
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
            ids: Arc::new(RandomIds),
            names: SettingNames::default(),
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

    /// How long a call may take in all, its retry included. 10 minutes unless set.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.limits.call = limit;
        self
    }

    /// How long connecting may take. 5 seconds unless set.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How long a streamed answer may pause between two pieces. 2 minutes unless set. The first piece may take
    /// as long as the call: some models think before they speak.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.limits.idle = limit;
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
        self.retry.longest_retry_after = limit;
        self.retry.longest_back_off = self.retry.longest_back_off.min(limit);
        self
    }

    /// Where tool calls get their ids when the server gives them none.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// How errors call the settings of this client, so that they can say what to set.
    pub fn setting_names(mut self, names: SettingNames) -> Self {
        self.names = names;
        self
    }

    /// The client.
    ///
    /// # Errors
    ///
    /// Fails when the endpoint is no http(s) URL, the model is empty, or a key or header cannot be sent.
    pub fn build(self) -> Result<OpenAiChat, LlmConfigError> {
        let base = base_url(&self.endpoint).ok_or_else(|| LlmConfigError::InvalidEndpoint {
            setting: self.names.endpoint.clone().into_owned(),
        })?;
        if self.model.trim().is_empty() {
            return Err(LlmConfigError::NoModel {
                setting: self.names.model.into_owned(),
            });
        }
        let headers = self.header_map()?;
        let http = http_client(&base, self.connect_timeout)?;
        let secret_headers = self.headers.into_iter().filter(|(_, _, is_secret)| *is_secret);
        let secrets = self
            .api_key
            .into_iter()
            .chain(secret_headers.map(|(_, value, _)| value));
        Ok(OpenAiChat {
            http,
            headers,
            limits: self.limits,
            retry: self.retry,
            ids: self.ids,
            report: Reporter {
                endpoint: shown(&base),
                model: self.model.into(),
                names: self.names,
                secrets: secrets.collect(),
            },
            provider: provider_of(&base).into(),
            url: chat_url(base),
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

/// Whether `text` can be a key: no server hands out keys with blanks, copying by hand does.
pub(crate) fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The base URL that `endpoint` means: a slash at its end and a pasted `/chat/completions` are dropped.
/// `None` when it is no http(s) URL, or holds a password, which would be shown in messages.
pub(crate) fn base_url(endpoint: &str) -> Option<Url> {
    let mut url = Url::parse(endpoint.trim()).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !is_http || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    let path = path.trim_end_matches('/').to_owned();
    url.set_path(&path);
    url.set_fragment(None);
    Some(url)
}

/// Whether the server is this machine: no proxy stands between, and no key is needed.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

/// Who serves `base`, as OpenTelemetry names providers. Whoever else speaks OpenAI's language counts as `openai`.
fn provider_of(base: &Url) -> &'static str {
    const PROVIDERS: [(&str, &str); 10] = [
        ("openai.azure.com", "azure.ai.openai"),
        ("services.ai.azure.com", "azure.ai.inference"),
        ("openrouter.ai", "openrouter"),
        ("deepseek.com", "deepseek"),
        ("groq.com", "groq"),
        ("mistral.ai", "mistral_ai"),
        ("perplexity.ai", "perplexity"),
        ("x.ai", "x_ai"),
        ("anthropic.com", "anthropic"),
        ("generativelanguage.googleapis.com", "gcp.gemini"),
    ];
    let host = base.host_str().unwrap_or_default();
    let is_of = |domain: &str| {
        let rest = host.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let known = PROVIDERS.into_iter().find(|(domain, _)| is_of(domain));
    known.map_or("openai", |(_, provider)| provider)
}

fn chat_url(mut base: Url) -> Url {
    let path = format!("{}/chat/completions", base.path().trim_end_matches('/'));
    base.set_path(&path);
    base
}

/// The endpoint as messages show it: without the query, which may hold a key.
fn shown(base: &Url) -> String {
    let mut url = base.clone();
    url.set_query(None);
    url.as_str().trim_end_matches('/').to_owned()
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
