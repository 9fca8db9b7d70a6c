//! The server over streamable HTTP: who may connect, and how much.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rockbot_core::context::CancellationToken;
use rockbot_core::{Digest, ExposeSecret, Secret};
use rockbot_tools::http_server::{Answer, MAX_CONNECTIONS, serve};
use tokio::net::TcpListener;

use super::handler::Handler;
use super::sessions::{Sessions, of_peer};

/// Maximum length of a request, in bytes.
const MAX_REQUEST: usize = 4 << 20;

/// The path of the server's URL.
const PATH: &str = "/mcp";

/// The names of this machine for itself.
const LOCAL_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The origins of pages of this machine.
const LOCAL_ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// The conditions for a client's connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Admission {
    pub(super) token: Option<Secret>,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
}

impl Admission {
    /// Checks that an address may be listened at: an address that others reach needs a token.
    pub(super) fn check(&self, address: SocketAddr) -> Result<(), String> {
        if address.ip().is_loopback() || self.token.is_some() {
            Ok(())
        } else {
            Err(format!(
                "tools would be served to everyone who reaches {address}: set a `Token`, or listen at 127.0.0.1"
            ))
        }
    }

    fn config(&self, address: IpAddr, stop: CancellationToken) -> StreamableHttpServerConfig {
        let local = LOCAL_HOSTS.map(str::to_owned).into_iter();
        let hosts = local.chain([address.to_string()]).chain(self.hosts.iter().cloned());
        let origins = LOCAL_ORIGINS
            .map(str::to_owned)
            .into_iter()
            .chain(self.origins.iter().cloned());
        let config = StreamableHttpServerConfig::default()
            .with_max_request_body_bytes(MAX_REQUEST)
            .with_cancellation_token(stop)
            .with_allowed_origins(origins)
            .enforce_origin_validation();
        if self.hosts.iter().any(|host| host == "*") {
            config.disable_allowed_hosts()
        } else {
            config.with_allowed_hosts(hosts)
        }
    }
}

/// The server. Cheap to clone.
#[derive(Clone)]
pub(super) struct HttpServer {
    service: StreamableHttpService<Handler, Sessions>,
    /// The digest of the token: its comparison tells nothing of the token itself.
    token: Option<Digest>,
    stop: CancellationToken,
}

impl HttpServer {
    pub(super) fn new(handler: Handler, admission: &Admission, address: SocketAddr, stop: CancellationToken) -> Self {
        let sessions = Arc::new(Sessions::default());
        let config = admission.config(address.ip(), stop.clone());
        Self {
            service: StreamableHttpService::new(move || Ok(handler.clone()), sessions, config),
            token: admission.token.as_ref().map(|token| digest(token.expose_secret())),
            stop,
        }
    }

    /// Serves connections until the server is stopped.
    pub(super) async fn serve(self, listener: TcpListener) {
        let stop = self.stop.clone();
        let answer = move |request, peer| {
            let server = self.clone();
            async move { of_peer(peer, server.answer(request)).await }
        };
        serve(listener, MAX_CONNECTIONS, stop, answer).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if request.uri().path() != PATH {
            return refusal(StatusCode::NOT_FOUND, "the MCP server is at /mcp");
        }
        if !self.is_authorized(&request) {
            let mut answer = refusal(StatusCode::UNAUTHORIZED, "send the bearer token of this server");
            let scheme = hyper::header::HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            return answer;
        }
        self.service.handle(request).await.map(|body| body.boxed_unsync())
    }

    fn is_authorized(&self, request: &Request<Incoming>) -> bool {
        let Some(expected) = &self.token else {
            return true;
        };
        let value = request
            .headers()
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let given = value.and_then(|value| value.split_once(' '));
        given.is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && digest(token.trim()) == *expected)
    }
}

fn digest(token: &str) -> Digest {
    Digest::of([token])
}

fn refusal(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed_unsync());
    *answer.status_mut() = status;
    answer
}
