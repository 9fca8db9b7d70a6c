//! The account of this host at an authorization server: OAuth 2.0 client credentials, whose tokens
//! take the place of a key.
//!
//! The operator names the authorization server by its issuer, since an agent could name a server
//! of its own and get the secret. The metadata of the issuer (RFC 8414, else OpenID Connect) name
//! the token endpoint. A token is kept until shortly before its end, in memory alone, and asked
//! for anew when the agent refuses it. Scopes are the operator's: an agent that demands more does
//! not get a token that is of use elsewhere.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Method, StatusCode};
use rockbot_core::support::loggable;
use rockbot_core::{Clock, ExposeSecret as _, Secret, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::error::PeerError;
use crate::egress::{self, EgressClient, EgressRequest, EgressResponse};

/// Maximum length of a document of an authorization server, in bytes.
const MAX_DOCUMENT: usize = 256 << 10;

/// Time before the end of a token from which on it is asked for anew.
const MARGIN: Duration = Duration::from_secs(30);

/// Maximum time for which a token counts, whatever the authorization server says.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Places of the metadata, before and behind the path of the issuer.
const METADATA: [(&str, &str); 2] = [
    ("/.well-known/oauth-authorization-server", ""),
    ("", "/.well-known/openid-configuration"),
];

/// An account at an authorization server.
#[derive(Clone)]
pub(super) struct Account {
    pub(super) issuer: String,
    pub(super) client_id: String,
    pub(super) secret: Secret,
    pub(super) scopes: Vec<String>,
}

/// The tokens of an account for one agent.
#[derive(Debug)]
pub(super) struct Tokens {
    account: Account,
    clock: Arc<dyn Clock>,
    /// The lock is held while a token is asked for, so that calls at once ask once.
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    endpoint: Option<Endpoint>,
    token: Option<(HeaderValue, Option<Timestamp>)>,
}

/// The place where tokens are asked for.
#[derive(Debug, Clone)]
struct Endpoint {
    url: Url,
    /// `true` if the secret stands in the form, and not in a header.
    in_form: bool,
}

/// The members of the metadata that have a meaning here.
#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    issuer: String,
    #[serde(default)]
    token_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// A granted token.
#[derive(Deserialize)]
struct Granted {
    access_token: Secret,
    #[serde(default)]
    token_type: String,
    #[serde(default)]
    expires_in: Option<Value>,
}

impl Granted {
    /// Returns the time for which the token counts; `None` if nothing says it.
    fn age(&self) -> Option<Duration> {
        // Some servers write the number as a text.
        let seconds = match self.expires_in.as_ref()? {
            Value::String(text) => text.parse().ok(),
            other => other.as_f64(),
        };
        let seconds = seconds.filter(|seconds| seconds.is_finite())?;
        Some(Duration::from_secs_f64(seconds.clamp(0.0, MAX_AGE.as_secs_f64())))
    }
}

impl Account {
    /// Returns the URL of the issuer; `None` if the issuer is no URL of a server.
    pub(super) fn issuer_url(&self) -> Option<Url> {
        let url = Url::parse(&self.issuer).ok()?;
        let is_plain = url.query().is_none() && url.fragment().is_none();
        (matches!(url.scheme(), "http" | "https") && is_plain).then_some(url)
    }
}

impl Tokens {
    pub(super) fn new(account: Account, clock: Arc<dyn Clock>) -> Self {
        Self {
            account,
            clock,
            held: Mutex::default(),
        }
    }

    /// Returns the header with a token, which is asked for if no token is held, or if the held token
    /// ends or is `refused`.
    pub(super) async fn header(
        &self,
        client: &EgressClient,
        refused: Option<&HeaderValue>,
    ) -> Result<HeaderValue, PeerError> {
        let mut held = self.held.lock().await;
        let is_good = |ends: Option<Timestamp>| ends.is_none_or(|ends| ends > self.clock.now().after(MARGIN));
        if let Some((token, ends)) = &held.token
            && is_good(*ends)
            && refused != Some(token)
        {
            return Ok(token.clone());
        }
        held.token = None;
        let endpoint = match held.endpoint.take() {
            Some(endpoint) => endpoint,
            None => self.endpoint(client).await?,
        };
        let granted = self.ask(client, &endpoint).await?;
        // An endpoint that grants no token is looked up anew the next time.
        held.endpoint = Some(endpoint);
        let value = format!("Bearer {}", granted.access_token.expose_secret());
        let mut value = HeaderValue::from_str(&value).map_err(|_| self.unusable("a token that no header may have"))?;
        value.set_sensitive(true);
        let age = granted.age();
        held.token = Some((value.clone(), age.map(|age| self.clock.now().after(age))));
        Ok(value)
    }

    /// Looks up the place where tokens are asked for.
    async fn endpoint(&self, client: &EgressClient) -> Result<Endpoint, PeerError> {
        let issuer = self.account.issuer_url();
        let issuer = issuer.ok_or_else(|| self.unusable("an issuer that is no URL"))?;
        for (before, behind) in METADATA {
            let path = issuer.path().trim_end_matches('/');
            let mut url = issuer.clone();
            url.set_path(&format!("{before}{path}{behind}"));
            let answer = self.fetch(client, EgressRequest::get(url)).await?;
            if answer.status == StatusCode::OK {
                return self.endpoint_in(&issuer, &self.document(&answer)?);
            }
            if answer.status.is_server_error() {
                return Err(self.failed(format!("answers with the status {}", answer.status.as_u16()), true));
            }
        }
        Err(self.unusable("no metadata, neither of OAuth nor of OpenID Connect"))
    }

    fn endpoint_in(&self, issuer: &Url, metadata: &Metadata) -> Result<Endpoint, PeerError> {
        let plain = |issuer: &str| issuer.trim_end_matches('/').to_owned();
        if plain(&metadata.issuer) != plain(&self.account.issuer) {
            return Err(self.unusable("metadata of another issuer"));
        }
        let url = metadata.token_endpoint.as_deref().and_then(|url| Url::parse(url).ok());
        // The secret goes in plain text only where the operator wrote `http` itself.
        let is_safe = |url: &Url| url.scheme() == "https" || url.origin() == issuer.origin();
        let url = url.filter(is_safe);
        let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
        let knows = |method: &str| methods.is_some_and(|methods| methods.iter().any(|known| known == method));
        Ok(Endpoint {
            url: url.ok_or_else(|| self.unusable("no token endpoint behind https"))?,
            in_form: knows("client_secret_post") && !knows("client_secret_basic"),
        })
    }

    async fn ask(&self, client: &EgressClient, endpoint: &Endpoint) -> Result<Granted, PeerError> {
        let answer = self.fetch(client, self.token_request(endpoint)).await?;
        if !answer.status.is_success() {
            return Err(self.refusal(&answer));
        }
        let granted: Granted = self.document(&answer)?;
        if !granted.token_type.eq_ignore_ascii_case("bearer") {
            return Err(self.unusable("a token that is no bearer token"));
        }
        Ok(granted)
    }

    fn token_request(&self, endpoint: &Endpoint) -> EgressRequest {
        let account = &self.account;
        let secret = account.secret.expose_secret();
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        if !account.scopes.is_empty() {
            form.append_pair("scope", &account.scopes.join(" "));
        }
        let mut request = EgressRequest::get(endpoint.url.clone());
        request.method = Method::POST;
        if endpoint.in_form {
            form.append_pair("client_id", &account.client_id);
            form.append_pair("client_secret", secret);
        } else {
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = STANDARD.encode(format!("{}:{}", encoded(&account.client_id), encoded(secret)));
            let basic = HeaderValue::from_str(&format!("Basic {pair}")).expect("Base64 is of legal characters");
            request.origin_headers.insert(AUTHORIZATION, basic);
        }
        request.headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        request.body = Some(Bytes::from(form.finish()));
        request
    }

    async fn fetch(&self, client: &EgressClient, mut request: EgressRequest) -> Result<EgressResponse, PeerError> {
        let headers: &mut HeaderMap = &mut request.headers;
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(egress::USER_AGENT));
        // A redirect would take the secret elsewhere.
        let fetched = client.fetch_once(request).await;
        fetched.map_err(|error| self.failed(format!("is not reached: {error}"), error.retry_helps()))
    }

    fn document<T: DeserializeOwned>(&self, answer: &EgressResponse) -> Result<T, PeerError> {
        let is_short = !answer.is_cut && answer.body.len() <= MAX_DOCUMENT;
        let read = is_short.then(|| serde_json::from_slice(&answer.body).ok()).flatten();
        read.ok_or_else(|| self.unusable("a document that cannot be read"))
    }

    /// Returns the error of an answer that grants no token. The codes are of RFC 6749.
    fn refusal(&self, answer: &EgressResponse) -> PeerError {
        #[derive(Deserialize)]
        struct Refused {
            error: String,
        }
        let status = answer.status;
        let code = self.document::<Refused>(answer).ok();
        let code: Option<String> = code.map(|refused| refused.error.chars().take(64).collect());
        let why = code.map_or_else(String::new, |code| format!(", `{}`", loggable(&code)));
        let is_passing = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        self.failed(format!("grants no token (HTTP {}{why})", status.as_u16()), is_passing)
    }

    fn unusable(&self, problem: &str) -> PeerError {
        self.failed(format!("has {problem}"), false)
    }

    fn failed(&self, problem: String, is_passing: bool) -> PeerError {
        PeerError::Account {
            issuer: loggable(&self.account.issuer).to_string(),
            problem,
            is_passing,
        }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
