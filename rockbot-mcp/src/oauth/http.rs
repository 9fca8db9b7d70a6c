//! The HTTP client of authorizations: it goes where servers and their metadata say, so the egress
//! policy applies.
//!
//! Addresses in a server's OAuth metadata are dialled under the egress policy, which allows the
//! server's own origin only if the operator wrote an IP address or `localhost`, since any other
//! name may be made to lead inside, and `Egress.AllowedHosts`; no redirect is followed by the
//! HTTP client. A page is shown to the user only if it is `http` or `https`. A declined
//! authorization is not asked for at each attempt.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use reqwest::{Method, StatusCode, Url};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use rockbot_core::BoxError;
use rockbot_tools::egress::{EgressPolicy, PolicyClient};
use serde_json::Value;

use crate::server::Web;

/// Maximum size of a response, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Maximum number of requests for metadata: each document may name the next ones.
const MAX_LOOKUPS: usize = 32;

/// The client: it never follows a redirect by itself, and never dials an internal address that
/// the operator has not named.
pub(super) struct PolicedHttp {
    client: PolicyClient,
    /// The client for the server's own origin, where the operator named its address itself.
    own: Option<(String, PolicyClient)>,
    lookups: AtomicUsize,
    /// The origin of the document that was found last.
    found_at: Mutex<Option<String>>,
}

impl PolicedHttp {
    /// Creates the client for a server. Its own address may be internal if the operator wrote it as
    /// an IP address or `localhost`: any other name may be made to lead into the operator's network
    /// later.
    pub(super) fn of(policy: &EgressPolicy, web: &Web) -> Result<Self, BoxError> {
        let policy = policy.clone().with_max_bytes(MAX_BYTES);
        let host = web.url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let is_address = host == "localhost" || literal.parse::<std::net::IpAddr>().is_ok();
        let own = is_address.then(|| {
            let named = match web.url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            };
            let client = PolicyClient::new(policy.clone().allow_host(&named)?)?;
            Ok::<_, BoxError>((web.url.origin().ascii_serialization(), client))
        });
        Ok(Self {
            own: own.transpose()?,
            client: PolicyClient::new(policy)?,
            lookups: AtomicUsize::default(),
            found_at: Mutex::default(),
        })
    }

    /// Returns `true` if the document that was found last is from the origin of `url`.
    pub(super) fn has_found_at(&self, url: &str) -> bool {
        let origin = Url::parse(url).map(|url| url.origin().ascii_serialization());
        let found_at = self.found_at.lock().unwrap_or_else(PoisonError::into_inner);
        origin.is_ok_and(|origin| found_at.as_ref() == Some(&origin))
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string();
        let origin = Url::parse(&url)?.origin().ascii_serialization();
        let is_lookup = parts.method == Method::GET;
        if is_lookup && self.lookups.fetch_add(1, Ordering::Relaxed) >= MAX_LOOKUPS {
            return Err(format!("its metadata is spread over more than {MAX_LOOKUPS} documents").into());
        }
        let own = self.own.as_ref().filter(|(own, _)| *own == origin);
        let client = own.map_or(&self.client, |(_, client)| client);
        let is_refresh = body.windows(REFRESH.len()).any(|part| part == REFRESH);
        let mut response = client.send(parts.method, &url, parts.headers, body).await?;
        if is_lookup && response.status == StatusCode::OK {
            *self.found_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(origin);
        }
        if is_refresh && refuses_client(&response.body) {
            tracing::warn!("an authorization server no longer knows this client; it is authorized anew");
            response.status = StatusCode::BAD_REQUEST;
            response.body = REFUSED.to_vec();
        }
        let mut answer = http::Response::new(response.body);
        *answer.status_mut() = response.status;
        *answer.headers_mut() = response.headers;
        Ok(answer)
    }
}

/// The part of a form that asks for a refresh.
const REFRESH: &[u8] = b"grant_type=refresh_token";

/// The refusal of a refresh token.
const REFUSED: &[u8] = br#"{"error": "invalid_grant"}"#;

/// Returns `true` if an answer refuses the client itself. Its tokens are then of no use, as if
/// they were refused; the client library would try them for ever.
fn refuses_client(body: &[u8]) -> bool {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    matches!(answer["error"].as_str(), Some("invalid_client" | "unauthorized_client"))
}

impl OAuthHttpClient for PolicedHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request.request))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::server::Endpoint;

    fn client(policy: &EgressPolicy, url: &str) -> PolicedHttp {
        match crate::McpServer::http("docs", url).unwrap().endpoint {
            Endpoint::Web(web) => PolicedHttp::of(policy, &web).unwrap(),
            _ => panic!("a server over HTTP"),
        }
    }

    async fn get(client: &PolicedHttp, url: &str) -> Result<StatusCode, String> {
        let request = http::Request::get(url).body(Vec::new()).unwrap();
        let answer = client.send(request).await;
        answer.map(|answer| answer.status()).map_err(|error| error.to_string())
    }

    /// Starts a server that answers each connection with an empty response. Returns its port.
    async fn serve() -> u16 {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 1024]).await;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(answer).await;
            }
        });
        port
    }

    #[tokio::test]
    async fn only_an_internal_address_that_the_operator_wrote_is_dialled() {
        let own = serve().await;
        let other = serve().await;
        let policy = EgressPolicy::new();
        let server = format!("http://127.0.0.1:{own}/");
        let elsewhere = format!("http://127.0.0.1:{other}/");
        let named = client(&policy, &server);
        assert_eq!(get(&named, &server).await, Ok(StatusCode::OK));
        assert!(named.has_found_at(&format!("{server}any/path")) && !named.has_found_at(&elsewhere));
        for url in [
            elsewhere.clone(),
            format!("https://127.0.0.1:{own}/"),
            format!("http://localhost:{own}/"),
        ] {
            let refused = get(&named, &url).await.unwrap_err();
            assert!(
                refused.contains("port") || refused.contains("internal"),
                "{url}: {refused}"
            );
        }
        // A name whose address is this machine, although it is the server's own.
        let name = format!("http://docs.localhost:{own}/");
        let refused = get(&client(&policy, &name), &name).await.unwrap_err();
        assert!(refused.contains("port"), "{refused}");
        let name = "http://docs.localhost/";
        assert!(get(&client(&policy, name), name).await.is_err());
        // The operator's settings allow it.
        let allowed = policy.allow_host(&format!("127.0.0.1:{other}")).unwrap();
        assert_eq!(get(&client(&allowed, name), &elsewhere).await, Ok(StatusCode::OK));
    }

    #[tokio::test]
    async fn a_server_that_names_ever_more_documents_is_given_up() {
        let url = format!("http://127.0.0.1:{}/", serve().await);
        let client = client(&EgressPolicy::new(), &url);
        for _ in 0..MAX_LOOKUPS {
            assert_eq!(get(&client, &url).await, Ok(StatusCode::OK));
        }
        let given_up = "its metadata is spread over more than 32 documents";
        assert_eq!(get(&client, &url).await, Err(given_up.to_owned()));
    }
}
