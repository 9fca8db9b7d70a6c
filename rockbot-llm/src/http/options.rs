//! [`ConnectionOptions`]: the options of a client, for every dialect.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rockbot_core::chat::ModelSettings;
use rockbot_core::{ExposeSecret, Secret};

use super::Dialect;
use super::connection::{Connection, Limits};
use super::endpoint::{base_url, is_key, is_loopback, shown};
use super::report::{Reporter, SettingNames};
use crate::error::LlmConfigError;
use crate::retry::RetryPolicy;

/// The options of a client of one model at one server.
pub(crate) struct ConnectionOptions {
    /// Base URL of the server.
    pub(crate) endpoint: String,
    /// Id of the model at that server.
    pub(crate) model: String,
    /// Key of the account, `None` for a server without keys.
    pub(crate) api_key: Option<Secret>,
    /// Headers of each request, in the order of their addition.
    pub(crate) headers: Vec<ExtraHeader>,
    /// Time limit for connecting. Default 5 seconds.
    pub(crate) connect_timeout: Duration,
    /// Bounds of an answer in time and size.
    pub(crate) limits: Limits,
    /// Retry policy. By default two attempts.
    pub(crate) retry: RetryPolicy,
    /// Settings of the model, for requests that do not set them.
    pub(crate) model_settings: Option<Arc<ModelSettings>>,
    /// Names of the settings, for error messages.
    pub(crate) names: SettingNames,
}

/// A header that is sent with each request.
pub(crate) struct ExtraHeader {
    pub(crate) name: String,
    pub(crate) value: Secret,
    /// `false` for a header of the dialect itself, whose value messages may show.
    pub(crate) is_secret: bool,
}

impl ExtraHeader {
    /// Creates a header. Its value is blanked out of error messages.
    pub(crate) fn new(name: impl Into<String>, value: Secret) -> Self {
        Self {
            name: name.into(),
            value,
            is_secret: true,
        }
    }
}

impl ConnectionOptions {
    /// Creates the default options of a client of `model` at `endpoint`.
    pub(crate) fn new(endpoint: String, model: String) -> Self {
        Self {
            endpoint,
            model,
            api_key: None,
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            limits: Limits::default(),
            retry: RetryPolicy::default().with_max_attempts(2),
            model_settings: None,
            names: SettingNames::default(),
        }
    }

    /// Checks the options and connects them to a client of one model that speaks `dialect`. Opens no
    /// connection yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the endpoint is no http(s) URL, needs TLS that this program is built without, the model is empty, a model setting is invalid, or a key or header cannot be sent.
    pub(crate) fn connect(&self, dialect: &'static Dialect) -> Result<Connection, LlmConfigError> {
        let base = base_url(&self.endpoint, dialect.call_paths).ok_or_else(|| LlmConfigError::InvalidEndpoint {
            setting: self.names.endpoint.clone().into_owned(),
        })?;
        self.check_tls(&base, cfg!(feature = "tls"))?;
        if self.model.trim().is_empty() {
            return Err(LlmConfigError::NoModel {
                setting: self.names.model.clone().into_owned(),
            });
        }
        let settings = self.model_settings.as_deref();
        settings.map_or(Ok(()), ModelSettings::check)?;
        let setting_headers = settings
            .into_iter()
            .flat_map(|settings| settings.extra_headers.values());
        let secrets = self.headers.iter().filter(|header| header.is_secret);
        let secrets = self.api_key.iter().chain(secrets.map(|header| &header.value));
        // A server may quote the URL that it was asked under, with the key in it.
        let queried = base.query_pairs().map(|(_, value)| value.into_owned());
        let queried: Vec<_> = queried.chain(base.query().map(str::to_owned)).collect();
        Ok(Connection {
            http: http_client(&base, self.connect_timeout)?,
            headers: self.header_map(dialect)?,
            limits: self.limits,
            retry: self.retry,
            report: Reporter {
                endpoint: shown(&base),
                model: self.model.as_str().into(),
                names: self.names.clone(),
                dialect,
                secrets: secrets
                    .cloned()
                    .chain(setting_headers.map(|value| value.as_str().into()))
                    .chain(queried.into_iter().map(Secret::from))
                    .collect(),
                of_requests: Mutex::default(),
            },
            settings: self.model_settings.clone(),
            base,
        })
    }

    /// Refuses a server behind https in a program without TLS.
    fn check_tls(&self, base: &Url, has_tls: bool) -> Result<(), LlmConfigError> {
        if base.scheme() == "https" && !has_tls {
            let setting = self.names.endpoint.clone().into_owned();
            return Err(LlmConfigError::NoTls { setting });
        }
        Ok(())
    }

    fn header_map(&self, dialect: &Dialect) -> Result<HeaderMap, LlmConfigError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in dialect.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(key) = &self.api_key {
            let value = format!("{}{}", dialect.key_prefix, key.expose_secret());
            let invalid = || LlmConfigError::InvalidKey {
                setting: self.names.api_key.clone().into_owned(),
            };
            if !is_key(key.expose_secret()) {
                return Err(invalid());
            }
            let name = HeaderName::from_static(dialect.key_header);
            headers.insert(name, secret_value(&value).ok_or_else(invalid)?);
        }
        for ExtraHeader { name, value, .. } in &self.headers {
            let invalid = || LlmConfigError::InvalidHeader { name: name.clone() };
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
            headers.insert(key, secret_value(value.expose_secret()).ok_or_else(invalid)?);
        }
        Ok(headers)
    }
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
    client
        .build()
        .map_err(|error| LlmConfigError::NoHttpClient { cause: error.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_a_server_behind_https_is_refused() {
        let options = ConnectionOptions::new("https://api.example.com".to_owned(), "m".to_owned());
        let url = |text| Url::parse(text).unwrap();
        let refused = options.check_tls(&url("https://api.example.com"), false);
        assert!(matches!(refused, Err(LlmConfigError::NoTls { .. })), "{refused:?}");
        assert!(options.check_tls(&url("http://localhost:8080/v1"), false).is_ok());
        assert!(options.check_tls(&url("https://api.example.com"), true).is_ok());
    }
}
