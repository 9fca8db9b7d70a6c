//! The sessions of clients of the older protocol over HTTP: their places, and the ids of their
//! running requests.
//!
//! The protocol library keeps the sessions. It finds the client's stream for an answer by the id
//! of the request: of two running requests with one id, the first would never be answered.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, ready};
use futures_util::stream::once;
use futures_util::{Stream, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, ServerSseMessage, SessionId};
use rockbot_tools::http_server::Places;
use tokio::time::timeout;

use super::request_ids::refusal;

/// Maximum number of sessions. A session of a further client takes the place of an earlier
/// session. A session without requests ends after five minutes.
const MAX_SESSIONS: usize = 256;

/// Maximum time for the end of a session that gives way.
const CLOSING: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// The address of the client whose request is being answered.
    static PEER: IpAddr;
}

/// Runs `answering` for the client at this address.
pub(super) async fn of_peer<T>(peer: IpAddr, answering: impl Future<Output = T>) -> T {
    PEER.scope(peer, answering).await
}

/// The sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    local: LocalSessionManager,
    places: SessionPlaces,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            local: LocalSessionManager::default(),
            places: SessionPlaces(Arc::new(Mutex::new(Places::new(MAX_SESSIONS)))),
        }
    }
}

/// The places of sessions, each with the ids of its running requests. Clones share them.
#[derive(Debug, Clone)]
struct SessionPlaces(Arc<Mutex<Places<SessionId, HashSet<RequestId>>>>);

impl SessionPlaces {
    fn lock(&self) -> MutexGuard<'_, Places<SessionId, HashSet<RequestId>>> {
        // Each change is one step, so a poisoned map is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the use of a session by a request, or by a stream without one. Returns `None` if the id
    /// of the request is in use.
    fn begin(&self, session: &SessionId, request: Option<RequestId>) -> Option<SessionUse> {
        let mut places = self.lock();
        if let Some(running) = places.begin_use(session)
            && let Some(id) = &request
            && !running.insert(id.clone())
        {
            places.end_use(session);
            return None;
        }
        Some(SessionUse {
            places: self.clone(),
            session: session.clone(),
            request,
        })
    }
}

/// The use of a session, which ends when it is dropped.
struct SessionUse {
    places: SessionPlaces,
    session: SessionId,
    request: Option<RequestId>,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        if let (Some(running), Some(id)) = (places.end_use(&self.session), &self.request) {
            running.remove(id);
        }
    }
}

/// Returns `stream`, whose drop ends the use.
fn until_the_end_of<S: Stream>(stream: S, used: Option<SessionUse>) -> impl Stream<Item = S::Item> {
    stream.map(move |message| {
        let _used = &used;
        message
    })
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.local.create_session().await?;
        let peer = PEER.try_with(|peer| *peer).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let gone = self.places.lock().take(id.clone(), peer, HashSet::new());
        for (session, _) in gone {
            // Its worker may wait for a client that does not read.
            let _ = timeout(CLOSING, self.local.close_session(&session)).await;
        }
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.places.lock().free(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        match (self.places.begin(id, request.clone()), request) {
            (None, Some(request)) => Ok(Either::Right(once(ready(ServerSseMessage::from_message(refusal(
                request,
            )))))),
            (used, _) => {
                let stream = self.local.create_stream(id, message).await?;
                Ok(Either::Left(until_the_end_of(stream, used)))
            }
        }
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        let _used = self.places.begin(id, None);
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let used = self.places.begin(id, None);
        let stream = self.local.create_standalone_stream(id).await?;
        Ok(until_the_end_of(stream, used))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let used = self.places.begin(id, None);
        let stream = self.local.resume(id, last_event_id).await?;
        Ok(until_the_end_of(stream, used))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.local.restore_session(id).await
    }
}
