//! Servers over HTTP: streamable HTTP of today, and where a server does not know it, the
//! transport of 2024.
//!
//! Headers with keys reach their server alone: no redirect is followed, no proxy of the
//! environment is used, and an event stream may name no address at another origin for requests. A
//! lost session is made anew by the supervisor, never by the transport, which would send a call
//! twice.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::RoleClient;
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rockbot_core::ExposeSecret;

use super::bounded::{Bounds, Signals};
use super::client::Client;
use super::event_stream::EventStream;
use super::handshake::Channel;
use super::{ConnectError, MAX_MESSAGE, open_service};
#[cfg(feature = "oauth")]
use crate::oauth::{Authorizer, authorized_client};
use crate::server::Web;

/// Time limit for making a connection of the network.
const DIAL: Duration = Duration::from_secs(10);

/// A running connection with its signals.
type Opened = (RunningService<RoleClient, Client>, Signals);

/// Opens a connection by the transport that the server knows, each within `limit`.
pub(super) async fn open(web: &Web, client: &Client, limit: Duration) -> Result<Opened, ConnectError> {
    let http = http_client(headers(web)?)?;
    let first = attempt(web, &http, client, limit, web.is_event_stream).await;
    let first = match first {
        Err(
            error @ (ConnectError::Refused { .. } | ConnectError::Unauthorized { .. } | ConnectError::EndedAtFirst(_)),
        ) => error,
        opened => return opened,
    };
    let second = attempt(web, &http, client, limit, !web.is_event_stream).await;
    // The error of the transport that was asked for tells more.
    second.map_err(|_| first)
}

/// Opens a connection by one transport.
async fn attempt(
    web: &Web,
    http: &reqwest::Client,
    client: &Client,
    limit: Duration,
    is_event_stream: bool,
) -> Result<Opened, ConnectError> {
    if is_event_stream {
        return event_stream(web, http, client, limit).await;
    }
    #[cfg(feature = "oauth")]
    if let Some(authorizer) = client.authorizer().filter(|authorizer| authorizer.serves(web)) {
        return authorized(authorizer, web, http, client, limit).await;
    }
    streamable(web, http.clone(), client, limit).await
}

/// Opens a connection with the tokens that are kept. If the server demands another authorization,
/// it is asked for once.
#[cfg(feature = "oauth")]
async fn authorized(
    authorizer: &Authorizer,
    web: &Web,
    http: &reqwest::Client,
    client: &Client,
    limit: Duration,
) -> Result<Opened, ConnectError> {
    let refused = |cause| ConnectError::Refused {
        cause,
        errors: String::new(),
    };
    let manager = match authorizer.demanded(client.server(), web).await {
        Some(manager) => manager,
        None => authorizer.kept(client.server(), web).await.map_err(refused)?,
    };
    let opened = streamable(web, authorized_client(http.clone(), manager), client, limit).await;
    let Err(ConnectError::Unauthorized { challenge }) = opened else {
        return opened;
    };
    let manager = authorizer
        .authorize(client.server(), web, &challenge)
        .await
        .map_err(refused)?;
    streamable(web, authorized_client(http.clone(), manager), client, limit).await
}

/// Returns the bounds of a connection. Each attempt has signals of its own: the signals of a
/// failed attempt have fired.
fn bounds(client: &Client) -> Bounds {
    Bounds {
        server: client.server().clone(),
        signals: Signals::default(),
    }
}

/// Creates the HTTP client: no redirects and no proxy of the environment, so that keys reach this
/// server alone.
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

async fn streamable<C>(web: &Web, http: C, client: &Client, limit: Duration) -> Result<Opened, ConnectError>
where
    C: StreamableHttpClient + Send + 'static,
{
    let bounds = bounds(client);
    let mut config = StreamableHttpClientTransportConfig::with_uri(web.url.as_str());
    config.max_sse_event_size = MAX_MESSAGE;
    config.max_json_response_size = MAX_MESSAGE;
    // A call would be sent twice; the supervisor makes a new session instead.
    config.reinit_on_expired_session = false;
    let transport = StreamableHttpClientTransport::with_client(http, config);
    let service = open_service(bounds.around(transport), client.clone(), Channel::Requests, limit).await?;
    Ok((service, bounds.signals))
}

async fn event_stream(
    web: &Web,
    http: &reqwest::Client,
    client: &Client,
    limit: Duration,
) -> Result<Opened, ConnectError> {
    let bounds = bounds(client);
    let opening = tokio::time::timeout(limit, EventStream::open(http.clone(), web.url.clone()));
    let transport = match opening.await {
        Ok(opened) => opened.map_err(|error| ConnectError::Refused {
            cause: error.to_string(),
            errors: String::new(),
        })?,
        Err(_) => return Err(ConnectError::TimedOut(limit, String::new())),
    };
    let service = open_service(bounds.around(transport), client.clone(), Channel::Stream, limit).await?;
    Ok((service, bounds.signals))
}
