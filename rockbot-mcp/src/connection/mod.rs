//! A connection to a server: the handshake of its era, its list of tools, its end.

mod asked;
mod bounded;
mod client;
mod event_stream;
mod events;
mod handshake;
mod http;
mod lines;
mod list;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RunningService, ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleClient, transport::Transport};
use rockbot_core::process::{Child, ProcessExit};
use rockbot_core::support::loggable;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

pub(crate) use asked::{Abandoned, ask};
use bounded::Bounds;
pub(crate) use bounded::Signals;
use client::Client;
use handshake::{Channel, Greeted};
pub(crate) use lines::TOO_LONG;
use lines::WatchedLines;
pub(crate) use list::{LeftOut, ListedTool, MAX_DESCRIPTION, MAX_NAME, MAX_TOOLS, ToolList, list_tools};

use crate::requests::{Answers, RunningCalls};
use crate::server::{Endpoint, McpServer};
use crate::transport_error::without_paths;

/// Maximum length of one message of a server, in bytes. A longer message is dropped.
const MAX_MESSAGE: usize = 8 << 20;

/// Time limit for closing a connection, before its process is ended.
const CLOSING: Duration = Duration::from_secs(1);

/// An established connection. Dropping it ends the process of the server, if it has one.
#[derive(Debug)]
pub(crate) struct Connection {
    service: RunningService<RoleClient, Client>,
    process: Option<Child>,
    pub(crate) signals: Signals,
    end: ConnectionEnd,
    is_through_pipes: bool,
}

/// The reason why a connection ended, or will.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionEnd {
    /// The reason of this side.
    given: Arc<OnceLock<String>>,
    process: Option<ProcessExit>,
}

impl ConnectionEnd {
    /// Notes why this side ends the connection. The first reason counts.
    pub(crate) fn give(&self, reason: String) {
        let _ = self.given.set(reason);
    }

    /// Returns the reason of a connection that has ended, if it is known.
    pub(crate) async fn reason(&self) -> Option<String> {
        match (self.given.get(), &self.process) {
            (Some(reason), _) => Some(reason.clone()),
            (None, Some(process)) => process.describe().await,
            (None, None) => None,
        }
    }
}

/// The reason why there is no connection, in words for the operator and for models.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the program cannot be started: {0}")]
    NotStarted(std::io::Error),
    #[error("no answer within {0:?}{1}")]
    TimedOut(Duration, String),
    #[error("{cause}{errors}")]
    Refused { cause: String, errors: String },
    #[error("the server asks for authorization: set its header `Authorization`")]
    Unauthorized {
        /// Demand of the server, in its own words.
        challenge: String,
    },
    #[error("{0}")]
    Address(&'static str),
    #[error("its answer to the first message cannot be understood")]
    NoEra,
    #[error("the server ended during the handshake{0}")]
    EndedAtFirst(String),
    #[error(
        "the server speaks no known version of the protocol, but {spoken}: known are {known}; update the server or this program"
    )]
    UnknownVersion { spoken: String, known: String },
    #[error("its tools cannot be listed: {0}")]
    NoTools(String),
}

impl Connection {
    /// Connects within `limit`. A server of any version of the protocol is understood.
    pub(crate) async fn open(server: &McpServer, answers: &Answers, limit: Duration) -> Result<Self, ConnectError> {
        let client = Client::new(server.name(), answers);
        match Self::open_as(server, client.clone(), limit).await {
            // Some servers of older versions end at a question that they do not know.
            Err(ConnectError::EndedAtFirst(_)) => Self::open_as(server, client.of_sessions(), limit).await,
            opened => opened,
        }
    }

    async fn open_as(server: &McpServer, client: Client, limit: Duration) -> Result<Self, ConnectError> {
        let signals = Signals::default();
        let bounds = Bounds {
            server: server.name().into(),
            signals: signals.clone(),
        };
        let (process, service) = match &server.endpoint {
            Endpoint::Process(program) => {
                let mut process = program.command().spawn().map_err(ConnectError::NotStarted)?;
                let (Some(stdout), Some(stdin)) = (process.take_stdout(), process.take_stdin()) else {
                    return Err(ConnectError::NotStarted(io::Error::other("the process has no pipes")));
                };
                let service = open_service(bounds.around(pipes(stdout, stdin)), client, Channel::Stream, limit).await;
                let service = match service {
                    Ok(service) => service,
                    Err(error) => return Err(error.with_end(process.exit()).await),
                };
                (Some(process), service)
            }
            Endpoint::Web(web) => {
                let (service, signals) = http::open(web, &client, limit).await?;
                return Ok(Self {
                    service,
                    process: None,
                    signals,
                    end: ConnectionEnd::default(),
                    is_through_pipes: false,
                });
            }
            // Such a server has no supervisor: its bridge connects it.
            Endpoint::Bridge(_) => return Err(ConnectError::NoTools("a bridge is connected to it".to_owned())),
            #[cfg(test)]
            Endpoint::Pipe(open) => {
                let (read, write) = tokio::io::split(open());
                let transport = bounds.around(pipes(read, write));
                (None, open_service(transport, client, Channel::Stream, limit).await?)
            }
        };
        let end = ConnectionEnd {
            process: process.as_ref().map(|process| process.exit().clone()),
            ..ConnectionEnd::default()
        };
        Ok(Self {
            service,
            process,
            signals,
            end,
            is_through_pipes: true,
        })
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Returns `true` if the server is reached through pipes, whose end alone tells that it is gone.
    pub(crate) fn is_through_pipes(&self) -> bool {
        self.is_through_pipes
    }

    pub(crate) fn running(&self) -> &RunningCalls {
        self.service.service().running()
    }

    /// Returns what the server told of itself.
    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.service.peer_info()
    }

    /// Returns the end of the connection, which may be still to come.
    pub(crate) fn end(&self) -> &ConnectionEnd {
        &self.end
    }

    /// Closes the connection, and waits a few seconds at most until its process has ended.
    pub(crate) async fn close(mut self) {
        // The pipes are dropped with the service: a server ends when its input does.
        let _ = self.service.close_with_timeout(CLOSING).await;
        drop(self.service);
        if let Some(process) = self.process
            && !process.stop().await
        {
            tracing::debug!("an MCP server did not end when told to: it is killed");
        }
    }
}

/// Returns the transport over two pipes, whose messages are bounded.
fn pipes<R, W>(read: R, write: W) -> AsyncRwTransport<RoleClient, WatchedLines<R>, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    AsyncRwTransport::new_client(WatchedLines::new(read, MAX_MESSAGE), write).with_max_line_length(MAX_MESSAGE)
}

/// Speaks the handshake within `limit`, and begins to serve the connection.
async fn open_service<T>(
    transport: T,
    client: Client,
    channel: Channel,
    limit: Duration,
) -> Result<RunningService<RoleClient, Client>, ConnectError>
where
    T: Transport<RoleClient> + 'static,
{
    let greeted = Greeted::by(transport, &client, channel, limit).await?;
    let lifecycle = if greeted.is_modern() {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        ClientLifecycleMode::Discover { preferred_versions }
    } else {
        ClientLifecycleMode::Initialize
    };
    let opening = client.serve_with_lifecycle(greeted, lifecycle);
    let service = match timeout(limit, opening).await {
        Ok(opened) => opened.map_err(|error| ConnectError::refused(&error))?,
        Err(_) => return Err(ConnectError::TimedOut(limit, String::new())),
    };
    // Lists are kept by the bridge itself, and never older than a server's word that they changed.
    service
        .peer()
        .set_response_cache_config(ClientCacheConfig::disabled())
        .await;
    Ok(service)
}

impl ConnectError {
    fn refused(error: &ClientInitializeError) -> Self {
        let cause = match error {
            error if error.is_authorization_required() => {
                let challenge = error.auth_challenge().unwrap_or_default().to_owned();
                return Self::Unauthorized { challenge };
            }
            ClientInitializeError::TransportError { error, .. } => without_paths(&error.error.to_string()),
            ClientInitializeError::ConnectionClosed(_) => "the server ended during the handshake".to_owned(),
            error => without_paths(&error.to_string()),
        };
        Self::Refused {
            cause,
            errors: String::new(),
        }
    }

    /// Adds the end and the last lines of the process, which mostly say what is wrong.
    async fn with_end(self, process: &ProcessExit) -> Self {
        let described = match &self {
            Self::TimedOut(..) | Self::EndedAtFirst(_) | Self::Refused { .. } => process.describe().await,
            _ => None,
        };
        let Some(last) = described.map(|described| format!("; {described}")) else {
            return self;
        };
        match self {
            Self::TimedOut(limit, _) => Self::TimedOut(limit, last),
            Self::EndedAtFirst(_) => Self::EndedAtFirst(last),
            Self::Refused { cause, .. } => Self::Refused { cause, errors: last },
            error => error,
        }
    }
}

/// Returns the text of an error of the protocol or the transport, safe to show.
pub(crate) fn text_of(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => loggable(&error.message).to_string(),
        ServiceError::Timeout { timeout } => format!("no answer within {timeout:?}"),
        ServiceError::UnexpectedResponse => "the answer cannot be read".to_owned(),
        error => without_paths(&error.to_string()),
    }
}
