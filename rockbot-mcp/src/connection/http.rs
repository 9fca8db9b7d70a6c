//! Servers over HTTP: streamable HTTP of today, and where a server does not know it, the transport of 2024.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::RoleClient;
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use rockbot_core::ExposeSecret;

use super::bounded::{Bounds, Signals};
use super::client::Client;
use super::event_stream::EventStream;
use super::{ConnectError, MAX_MESSAGE, handshake};
use crate::server::Web;

/// Time in which a connection of the network is made.
const DIAL: Duration = Duration::from_secs(10);

/// A running connection with its signals.
type Opened = (RunningService<RoleClient, Client>, Signals);

/// Opens a connection by the transport that the server knows, each within `limit`.
pub(super) async fn open(web: &Web, client: &Client, limit: Duration) -> Result<Opened, ConnectError> {
    let http = http_client(headers(web)?)?;
    let first = attempt(web, &http, client, limit, web.is_event_stream).await;
    let Err(ConnectError::Refused { cause, errors }) = first else {
        return first;
    };
    let second = attempt(web, &http, client, limit, !web.is_event_stream).await;
    // The error of the transport that was asked for tells more.
    second.map_err(|_| ConnectError::Refused { cause, errors })
}

/// Opens a connection by one transport. Each has signals of its own: those of a failed one have fired.
async fn attempt(
    web: &Web,
    http: &reqwest::Client,
    client: &Client,
    limit: Duration,
    is_event_stream: bool,
) -> Result<Opened, ConnectError> {
    let bounds = Bounds {
        server: client.server().clone(),
        signals: Signals::default(),
    };
    let service = match is_event_stream {
        true => event_stream(web, http, client.clone(), limit, &bounds).await?,
        false => streamable(web, http, client.clone(), limit, &bounds).await?,
    };
    Ok((service, bounds.signals))
}

/// Creates the HTTP client: no redirects and no proxy of the environment, so that keys reach this server alone.
fn http_client(headers: HeaderMap) -> Result<reqwest::Client, ConnectError> {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .connect_timeout(DIAL)
        .tcp_nodelay(true)
        .default_headers(headers);
    builder
        .build()
        .map_err(|_| ConnectError::Address("the HTTP client cannot be created"))
}

/// Returns the headers of all requests. Their values are marked as secret.
fn headers(web: &Web) -> Result<HeaderMap, ConnectError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &web.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_str(value.expose_secret());
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err(ConnectError::Address(
                "the name or the value of a header has characters that none may have",
            ));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

async fn streamable(
    web: &Web,
    http: &reqwest::Client,
    client: Client,
    limit: Duration,
    bounds: &Bounds,
) -> Result<RunningService<RoleClient, Client>, ConnectError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(web.url.as_str());
    config.max_sse_event_size = MAX_MESSAGE;
    config.max_json_response_size = MAX_MESSAGE;
    // A call would be sent twice; the supervisor makes a new session instead.
    config.reinit_on_expired_session = false;
    let transport = StreamableHttpClientTransport::with_client(http.clone(), config);
    handshake(bounds.around(transport), client, limit).await
}

async fn event_stream(
    web: &Web,
    http: &reqwest::Client,
    client: Client,
    limit: Duration,
    bounds: &Bounds,
) -> Result<RunningService<RoleClient, Client>, ConnectError> {
    let opening = tokio::time::timeout(limit, EventStream::open(http.clone(), web.url.clone()));
    let transport = match opening.await {
        Ok(opened) => opened.map_err(|error| ConnectError::Refused {
            cause: error.to_string(),
            errors: String::new(),
        })?,
        Err(_) => return Err(ConnectError::TimedOut(limit, String::new())),
    };
    handshake(bounds.around(transport), client, limit).await
}
