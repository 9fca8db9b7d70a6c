//! The server over streamable HTTP: who may connect, and how much.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rockbot_core::context::CancellationToken;
use rockbot_core::{Digest, ExposeSecret, Secret};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::handler::Handler;
use super::places::Places;
use super::sessions::{Sessions, of_peer};

/// Maximum number of connections; a further connection takes the place of an earlier one.
const MAX_CONNECTIONS: usize = 256;

/// Maximum length of a request, in bytes.
const MAX_REQUEST: usize = 4 << 20;

/// Maximum time for the headers of a request.
const HEADERS: Duration = Duration::from_secs(10);

/// The pause after a connection that could not be accepted: most likely there are too many open files.
const PAUSE: Duration = Duration::from_millis(100);

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
        match address.ip().is_loopback() || self.token.is_some() {
            true => Ok(()),
            false => Err(format!(
                "tools would be served to everyone who reaches {address}: set a `Token`, or listen at 127.0.0.1"
            )),
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
        match self.hosts.iter().any(|host| host == "*") {
            true => config.disable_allowed_hosts(),
            false => config.with_allowed_hosts(hosts),
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

/// The places of connections, each with the token that ends it.
type ConnectionPlaces = Mutex<Places<u64, CancellationToken>>;

/// The place of one connection, which is free again when it is dropped.
struct Connection {
    places: Arc<ConnectionPlaces>,
    number: u64,
    peer: IpAddr,
}

impl Connection {
    fn begin_use(self: &Arc<Self>) -> ConnectionUse {
        lock(&self.places).begin_use(&self.number);
        ConnectionUse(self.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.places).free(&self.number);
    }
}

/// The use of a connection by a request, which ends when it is dropped.
struct ConnectionUse(Arc<Connection>);

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        lock(&self.0.places).end_use(&self.0.number);
    }
}

fn lock(places: &ConnectionPlaces) -> MutexGuard<'_, Places<u64, CancellationToken>> {
    // Each change is one step, so a poisoned map is consistent.
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

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
    pub(super) async fn serve(self, listener: TcpListener, tasks: TaskTracker) {
        let places = Arc::new(Mutex::new(Places::new(MAX_CONNECTIONS)));
        let accepting = async {
            for number in 0_u64.. {
                match listener.accept().await {
                    Ok((stream, address)) => {
                        let end = self.stop.child_token();
                        let connection = Connection {
                            places: places.clone(),
                            number,
                            peer: address.ip(),
                        };
                        let gone = lock(&places).take(number, address.ip(), end.clone());
                        gone.into_iter().for_each(|(_, end)| end.cancel());
                        tasks.spawn(self.clone().connection(stream, connection, end));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection to the MCP server cannot be accepted; trying again");
                        sleep(PAUSE).await;
                    }
                }
            }
        };
        self.stop.run_until_cancelled(accepting).await;
    }

    async fn connection(self, stream: TcpStream, connection: Connection, end: CancellationToken) {
        let connection = Arc::new(connection);
        let service = service_fn(move |request| {
            let (server, used) = (self.clone(), connection.begin_use());
            async move {
                let answer = of_peer(used.0.peer, server.answer(request)).await;
                // In use until the client has read the answer.
                let answer = answer.map(|body| body.map_frame(move |frame| (frame, &used).0).boxed());
                Ok::<_, Infallible>(answer)
            }
        });
        let mut protocol = http1::Builder::new();
        protocol.timer(TokioTimer::new()).header_read_timeout(HEADERS);
        let connection = protocol.serve_connection(TokioIo::new(stream), service);
        // A problem of a connection concerns its client, who sees it end.
        let _ = end.run_until_cancelled(connection).await;
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
        self.service.handle(request).await
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
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer
}
