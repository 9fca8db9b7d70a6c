//! The client that makes requests under a policy.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
};
use reqwest::{Method, Response, StatusCode};
use rockbot_core::BoxError;
use tokio::time::{Instant, timeout};
use url::Url;

use super::body::{Body, Received};
#[cfg(any(feature = "a2a", feature = "a2a-server"))]
use super::pieces::EgressPieces;
use super::resolver::{CheckedResolver, Lookup, SystemLookup};
use super::{EgressError, EgressPolicy};

/// The name of the client in requests.
pub(crate) const USER_AGENT: &str = "Mozilla/5.0 (compatible; rockbot/0.1)";

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// Maximum size of the header fields of a response, in bytes.
const MAX_HEADERS: usize = 64 << 10;

/// Idle connections that are kept for each host.
const IDLE_CONNECTIONS: usize = 2;

/// A client whose requests obey a policy. Clones share their connections.
#[derive(Debug, Clone)]
pub(crate) struct EgressClient {
    http: reqwest::Client,
    /// For hosts that the operator named: its resolver takes internal addresses. `None` if there are
    /// none.
    named: Option<reqwest::Client>,
    policy: Arc<EgressPolicy>,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct EgressRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Header fields that go to the origin of `url` alone: credentials, and all that the client does
    /// not set itself.
    pub(crate) origin_headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
}

/// A response, whatever its status.
#[derive(Debug)]
pub(crate) struct EgressResponse {
    /// The URL after all redirects.
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// `true` if the body was longer than the policy allows, and is cut.
    pub(crate) is_cut: bool,
    /// `true` if another response, a redirect, led to this one.
    #[cfg_attr(not(feature = "rest"), expect(dead_code, reason = "other requests only read"))]
    pub(crate) is_redirected: bool,
}

impl EgressRequest {
    /// Creates a GET request.
    pub(crate) fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            origin_headers: HeaderMap::new(),
            body: None,
        }
    }

    /// Changes the request as a redirect with `status` asks.
    pub(super) fn redirect(&mut self, status: StatusCode, target: Url) -> Result<(), EgressError> {
        let is_same_origin = target.origin() == self.url.origin();
        if self.url.scheme() == "https" && target.scheme() == "http" {
            return Err(EgressError::Downgrade);
        }
        let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if !keeps_method && self.method != Method::HEAD {
            self.method = Method::GET;
            self.body = None;
            self.headers.remove(CONTENT_TYPE);
        }
        if !is_same_origin {
            self.origin_headers.clear();
            if self.body.is_some() {
                return Err(EgressError::BodyElsewhere);
            }
        }
        self.url = target;
        Ok(())
    }
}

#[cfg(feature = "web")]
impl EgressResponse {
    /// Returns the media type without its parameters, in lower case; empty if there is none.
    pub(crate) fn media_type(&self) -> String {
        let value = self.content_type();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Returns the content type with its parameters; empty if there is none.
    pub(crate) fn content_type(&self) -> &str {
        text_of(&self.headers, CONTENT_TYPE.as_str())
    }
}

/// Returns the value of a header field; empty if it is missing or no text.
#[cfg(feature = "web")]
pub(crate) fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

impl EgressClient {
    /// Creates a client.
    ///
    /// # Errors
    ///
    /// Returns an error if TLS cannot be set up.
    pub(crate) fn new(policy: EgressPolicy) -> Result<Self, BoxError> {
        Self::with_lookup(policy, SystemLookup)
    }

    pub(crate) fn with_lookup(policy: EgressPolicy, lookup: impl Lookup) -> Result<Self, BoxError> {
        let policy = Arc::new(policy);
        let lookup: Arc<dyn Lookup> = Arc::new(lookup);
        let client = |is_named: bool| {
            http_client(CheckedResolver {
                policy: policy.clone(),
                is_named,
                lookup: lookup.clone(),
            })
        };
        let named = policy.has_exceptions().then(|| client(true)).transpose()?;
        Ok(Self {
            http: client(false)?,
            named,
            policy,
        })
    }

    /// Returns the policy.
    pub(crate) fn policy(&self) -> &EgressPolicy {
        &self.policy
    }

    /// Sends a request, follows redirects, and returns the response with its body.
    pub(crate) async fn fetch(&self, mut request: EgressRequest) -> Result<EgressResponse, EgressError> {
        let limit = self.policy.limits.timeout;
        let begin = Instant::now();
        let mut host = String::new();
        let Ok(followed) = timeout(limit, self.follow(&mut request, &mut host)).await else {
            return Err(EgressError::Timeout { host, limit });
        };
        let (response, is_redirected) = followed?;
        let left = limit.saturating_sub(begin.elapsed());
        let received = self.receive(response, &request.url, &host, left).await?;
        Ok(EgressResponse {
            is_redirected,
            ..received
        })
    }

    /// Sends a request, and returns the response with its body. A redirect is a response.
    pub(crate) async fn fetch_once(&self, mut request: EgressRequest) -> Result<EgressResponse, EgressError> {
        self.policy.check_url(&mut request.url)?;
        let limit = self.policy.limits.timeout;
        let begin = Instant::now();
        let host = request.url.host_str().unwrap_or_default().to_owned();
        let Ok(sent) = timeout(limit, self.send(&request, &host)).await else {
            return Err(EgressError::Timeout { host, limit });
        };
        let left = limit.saturating_sub(begin.elapsed());
        self.receive(sent?, &request.url, &host, left).await
    }

    /// Sends a request, waiting up to `limit` for the beginning of the response, whose body comes in
    /// pieces. A redirect is a response.
    #[cfg(any(feature = "a2a", feature = "a2a-server"))]
    pub(crate) async fn open(&self, mut request: EgressRequest, limit: Duration) -> Result<EgressPieces, EgressError> {
        self.policy.check_url(&mut request.url)?;
        let host = request.url.host_str().unwrap_or_default().to_owned();
        // Pieces are passed on as they come.
        request
            .headers
            .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        match timeout(limit, self.send(&request, &host)).await {
            Ok(sent) => EgressPieces::new(sent?, host),
            Err(_) => Err(EgressError::Timeout { host, limit }),
        }
    }

    /// Sends a request, follows redirects, and returns the last response, with `true` if a redirect
    /// led to it.
    async fn follow(&self, request: &mut EgressRequest, host: &mut String) -> Result<(Response, bool), EgressError> {
        let max = self.policy.limits.max_redirects;
        self.policy.check_url(&mut request.url)?;
        let mut hop = 0;
        loop {
            request.url.host_str().unwrap_or_default().clone_into(host);
            let response = self
                .send(request, host)
                .await
                .map_err(|error| at_hop(error, hop, &request.url))?;
            let Some(mut target) = target_of(&response, host)? else {
                return Ok((response, hop > 0));
            };
            hop += 1;
            if hop > max {
                let target = without_query(&target);
                return Err(EgressError::TooManyRedirects { max, target });
            }
            let checked = self.policy.check_url(&mut target);
            let checked = checked.and_then(|()| request.redirect(response.status(), target.clone()));
            checked.map_err(|error| at_hop(error, hop, &target))?;
        }
    }

    async fn send(&self, request: &EgressRequest, host: &str) -> Result<Response, EgressError> {
        let mut headers = request.headers.clone();
        headers
            .entry(ACCEPT_ENCODING)
            .or_insert_with(|| HeaderValue::from_static("gzip"));
        for (name, value) in &request.origin_headers {
            let mut value = value.clone();
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let named = self.named.as_ref().filter(|_| self.policy.is_exception(&request.url));
        let mut sending = named
            .unwrap_or(&self.http)
            .request(request.method.clone(), request.url.clone())
            .headers(headers);
        if let Some(body) = &request.body {
            sending = sending.body(body.clone());
        }
        let response = sending
            .send()
            .await
            .map_err(|error| EgressError::of_transport(error, host))?;
        let size = |(name, value): (&reqwest::header::HeaderName, &HeaderValue)| name.as_str().len() + value.len();
        if response.headers().iter().map(size).sum::<usize>() > MAX_HEADERS {
            return Err(EgressError::Headers {
                host: host.to_owned(),
                max: MAX_HEADERS,
            });
        }
        Ok(response)
    }

    /// Receives the body of a response, waiting up to `left` for it. Decoding is no waiting: it is
    /// bounded by the size.
    async fn receive(
        &self,
        mut response: Response,
        url: &Url,
        host: &str,
        left: Duration,
    ) -> Result<EgressResponse, EgressError> {
        let encodings: Vec<_> = response.headers().get_all(CONTENT_ENCODING).iter().collect();
        let encodings = encodings.iter().map(|value| value.to_str().unwrap_or("?"));
        let encoding = encodings.collect::<Vec<_>>().join(", ");
        let unknown = || EgressError::Encoding {
            host: host.to_owned(),
            encoding: encoding.chars().take(40).collect(),
        };
        let mut body = Body::new(&encoding, self.policy.limits.max_bytes).ok_or_else(unknown)?;
        let damaged = || EgressError::Damaged { host: host.to_owned() };
        let is_cut = match self.fill(&mut body, &mut response, host, left).await? {
            Received::Damaged => return Err(damaged()),
            received => received == Received::Full,
        };
        let status = response.status();
        let mut headers = std::mem::take(response.headers_mut());
        headers.remove(CONTENT_LENGTH);
        let body = if is_cut {
            body.cut()
        } else {
            body.finish().ok_or_else(damaged)?
        };
        Ok(EgressResponse {
            url: url.clone(),
            status,
            headers,
            body,
            is_cut,
            is_redirected: false,
        })
    }

    /// Takes the pieces of a body as they come, until the last piece or a piece that cannot be taken
    /// whole.
    async fn fill(
        &self,
        body: &mut Body,
        response: &mut Response,
        host: &str,
        mut left: Duration,
    ) -> Result<Received, EgressError> {
        loop {
            let begin = Instant::now();
            let piece = timeout(left, response.chunk())
                .await
                .map_err(|_| EgressError::Timeout {
                    host: host.to_owned(),
                    limit: self.policy.limits.timeout,
                })?;
            left = left.saturating_sub(begin.elapsed());
            let Some(piece) = piece.map_err(|error| EgressError::of_transport(error, host))? else {
                return Ok(Received::More);
            };
            let received = body.take(&piece).await;
            if received != Received::More {
                return Ok(received);
            }
        }
    }
}

fn http_client(resolver: CheckedResolver) -> Result<reqwest::Client, BoxError> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .pool_idle_timeout(Duration::from_secs(30))
        // Another crate may have built the decoders in, which have no limit.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .dns_resolver(Arc::new(resolver))
        .build()?;
    Ok(client)
}

/// Returns the target of a redirect, or `None` if the response is not one.
fn target_of(response: &Response, host: &str) -> Result<Option<Url>, EgressError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let target = location.and_then(|location| response.url().join(location).ok());
    let missing = || EgressError::NoTarget { host: host.to_owned() };
    target.map(Some).ok_or_else(missing)
}

/// Returns the error of a request that a redirect asked for, or the error as it is at the first
/// request.
fn at_hop(error: EgressError, hop: usize, target: &Url) -> EgressError {
    match hop {
        0 => error,
        hop => EgressError::Redirect {
            hop,
            target: without_query(target),
            cause: Box::new(error),
        },
    }
}

fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // A password in the target of a redirect is the server's, and is not repeated either.
    let has_user = !url.username().is_empty() || url.password().is_some();
    let hidden = has_user && url.set_username("").and_then(|()| url.set_password(None)).is_err();
    let shown = if hidden {
        url.scheme().to_owned()
    } else {
        url.to_string()
    };
    shown.chars().take(200).collect()
}
