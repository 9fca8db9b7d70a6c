//! A request from its arrival to its handler: names, sign-in, bounds.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, MatchedPath, Path, Query, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::request::Parts as Head;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use rockbot_core::content::Content;
use rockbot_core::context::CancellationToken;
use rockbot_core::store::{ConversationMemory, MediaStore};
use rockbot_core::turn::{TurnRequest, TurnRunner};
use rockbot_core::{Clock, IdSource, Principal, SessionId, TurnId};
use rockbot_tools::http_server::{AcceptedNames, UnknownName};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::error::WebError;
use crate::host_parts::HostParts;
use crate::limits::{Limits, PrincipalLimits};
use crate::meters;
use crate::sign_in::SignIn;

/// Maximum time for a body.
const BODY: Duration = Duration::from_secs(30);

/// Maximum length of a body that is read at any time, in bytes. A longer body needs a permit of
/// `long_bodies`.
const SHORT_BODY: u64 = 64 << 10;

/// Maximum number of longer bodies in memory at once.
const MAX_LONG_BODIES: usize = 16;

/// Maximum number of searches in histories at once. Others wait.
const MAX_SEARCHES: usize = 2;

/// Maximum length of the ids that clients choose, in bytes.
const MAX_ID: usize = 256;

/// Source of the turns, which is a part of their identity.
const SOURCE: &str = "web";

/// The door, once the host has started.
pub(crate) type DoorSlot = Arc<OnceLock<Arc<Door>>>;

/// The entrance of a server, and the parts of the host behind it.
pub(crate) struct Door {
    pub(crate) turns: Arc<dyn TurnRunner>,
    pub(crate) memory: Arc<dyn ConversationMemory>,
    pub(crate) media: Option<Arc<dyn MediaStore>>,
    pub(crate) parts: HostParts,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Name of the host's own agent.
    pub(crate) name: Arc<str>,
    /// Names of the agents beside it that users may ask.
    pub(crate) agents: Vec<String>,
    pub(crate) names: AcceptedNames,
    pub(crate) sign_in: SignIn,
    pub(crate) limits: Limits,
    pub(crate) max_body: usize,
    pub(crate) long_bodies: Semaphore,
    /// Permits of searches, each of which has many texts in memory.
    pub(crate) searches: Semaphore,
    /// Ends all streams.
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Name of this process in the ids of events: the positions in a turn begin anew in the next one.
    pub(crate) epoch: String,
}

impl Door {
    /// Returns the permits of longer bodies.
    pub(crate) fn long_bodies() -> Semaphore {
        Semaphore::new(MAX_LONG_BODIES)
    }

    /// Returns the permits of searches.
    pub(crate) fn searches() -> Semaphore {
        Semaphore::new(MAX_SEARCHES)
    }

    fn check_names(&self, head: &Head) -> Result<(), WebError> {
        let refused = |message| WebError::new(StatusCode::FORBIDDEN, "name_refused", message);
        self.names
            .check(&head.uri, &head.headers)
            .map_err(|unknown| match unknown {
                UnknownName::Host => refused(
                    "the header `Host` names another server: the operator allows names by `WebServer.AllowedHosts`",
                ),
                UnknownName::Origin => {
                    refused("pages of this origin may not call: the operator allows some by `WebServer.AllowedOrigins`")
                }
            })
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door")
            .field("sign_in", &self.sign_in)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The address that a connection came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Admits a request: it names this host, no page of another host sent it, and its user is known.
pub(crate) async fn admit(State(slot): State<DoorSlot>, request: Request, next: Next) -> Response {
    let Some(door) = slot.get().cloned() else {
        return WebError::unavailable("not_started", "the agent has not started yet: try again in a second")
            .into_response();
    };
    let route = request.extensions().get::<MatchedPath>().cloned();
    let begun = Instant::now();
    let (mut head, body) = request.into_parts();
    let mut response = match admitted(door, &head) {
        Ok(caller) => {
            head.extensions.insert(caller);
            next.run(Request::from_parts(head, body)).await
        }
        Err(error) => error.into_response(),
    };
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    meters::answered(route, response.status(), begun.elapsed());
    response.headers_mut().insert(
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    response
}

fn admitted(door: Arc<Door>, head: &Head) -> Result<Caller, WebError> {
    door.check_names(head)?;
    let peer = head.extensions.get::<Peer>().map(|peer| peer.0);
    let mounted = || head.extensions.get::<ConnectInfo<SocketAddr>>();
    let peer = peer.or_else(|| mounted().map(|ConnectInfo(address)| address.ip()));
    let principal = door.sign_in.principal(&head.headers, peer)?;
    Ok(Caller {
        limits: door.limits.of(&principal),
        door,
        principal,
        trace: text_of(&head.headers, "traceparent").map(str::to_owned),
    })
}

/// The user who sends a request, and the way to the agent.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) door: Arc<Door>,
    pub(crate) principal: Principal,
    limits: Arc<PrincipalLimits>,
    trace: Option<String>,
}

impl Caller {
    /// Counts a message of the user.
    pub(crate) async fn count_message(&self) -> Result<(), WebError> {
        self.limits.message().await
    }

    /// Takes a permit to read an answer.
    pub(crate) fn take_stream(&self) -> Result<OwnedSemaphorePermit, WebError> {
        self.limits.stream()
    }

    /// Returns `true` if the user may apply and undo dreams.
    pub(crate) fn is_operator(&self) -> bool {
        self.door.sign_in.is_operator(&self.principal)
    }

    /// Returns a turn that the user may read and cancel.
    pub(crate) async fn turn(&self, id: &str) -> Result<TurnId, WebError> {
        check_id("the id of the turn", id)?;
        let turn = TurnId::from(id);
        self.door.turns.check_access(&turn, &self.principal).await?;
        Ok(turn)
    }

    /// Returns the request of a message to an agent, by default the host's own.
    pub(crate) fn request(
        &self,
        agent: Option<&str>,
        session: &str,
        message: &str,
        content: Content,
    ) -> Result<TurnRequest, WebError> {
        check_id("the session", session)?;
        check_id("the id of the message", message)?;
        let agent = self.agent(agent)?;
        let request = TurnRequest::new(self.session(agent, session), message, content)
            .with_principal(self.principal.clone())
            .with_source(SOURCE)
            .with_marked_statements(true);
        let request = match agent {
            Some(agent) => request.with_agent(agent),
            None => request,
        };
        Ok(match &self.trace {
            Some(trace) => request.with_trace(trace.clone()),
            None => request,
        })
    }

    /// Returns the name of an agent beside the host's own; `None` is the host's own.
    fn agent<'a>(&self, agent: Option<&'a str>) -> Result<Option<&'a str>, WebError> {
        match agent {
            None => Ok(None),
            Some(agent) if *agent == *self.door.name => Ok(None),
            Some(agent) if self.door.agents.iter().any(|known| known == agent) => Ok(Some(agent)),
            Some(agent) => Err(WebError::new(
                StatusCode::NOT_FOUND,
                "model_not_found",
                format!("there is no agent `{agent}` here: GET /v1/models lists the agents"),
            )),
        }
    }

    /// Returns the session of the host that belongs to a session of an agent: agents beside the
    /// host's own have sessions of their own.
    fn session(&self, agent: Option<&str>, session: &str) -> SessionId {
        match agent {
            Some(agent) => SessionId::from(format!("{agent}/{session}")),
            None => SessionId::from(session),
        }
    }
}

/// Checks an id that a client chose.
pub(crate) fn check_id(what: &str, id: &str) -> Result<(), WebError> {
    if id.is_empty() || id.len() > MAX_ID || id.contains(char::is_control) {
        let message = format!("{what} is empty, has control characters, or has more than {MAX_ID} bytes");
        Err(WebError::invalid(message))
    } else {
        Ok(())
    }
}

/// Returns a header that is a text.
pub(crate) fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = WebError;

    async fn from_request_parts(head: &mut Head, _: &S) -> Result<Self, WebError> {
        let caller = head.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| WebError::unavailable("not_started", "the agent has not started yet"))
    }
}

/// A part of the address, such as the id of a turn.
pub(crate) struct UrlPath<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for UrlPath<T> {
    type Rejection = WebError;

    async fn from_request_parts(head: &mut Head, state: &S) -> Result<Self, WebError> {
        match Path::from_request_parts(head, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(rejection) => Err(WebError::invalid(rejection.body_text())),
        }
    }
}

/// The query of the address.
pub(crate) struct UrlQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for UrlQuery<T> {
    type Rejection = WebError;

    async fn from_request_parts(head: &mut Head, state: &S) -> Result<Self, WebError> {
        match Query::from_request_parts(head, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(WebError::invalid(rejection.body_text())),
        }
    }
}

/// A body of JSON within its bounds.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = WebError;

    async fn from_request(request: Request, _: &S) -> Result<Self, WebError> {
        let (mut head, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut head, &()).await?;
        if !is_json(&head.headers) {
            return Err(WebError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "wrong_content_type",
                "send the body as `Content-Type: application/json`",
            ));
        }
        let (bytes, _long) = read(&caller.door, body).await?;
        match Json::<T>::from_bytes(&bytes) {
            Ok(Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(WebError::invalid(rejection.body_text())),
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    // A page of another origin can send other types without being asked first.
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

/// Reads a body. A long body holds its permit until it is parsed.
async fn read(door: &Door, body: Body) -> Result<(Bytes, Option<SemaphorePermit<'_>>), WebError> {
    let max = door.max_body;
    let too_long = || {
        WebError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_long",
            format!("the body is longer than {max} bytes: send less, or images by URL"),
        )
    };
    let hint = axum::body::HttpBody::size_hint(&body).upper();
    if hint.is_some_and(|length| length > max as u64) {
        return Err(too_long());
    }
    let place = if hint.is_some_and(|length| length <= SHORT_BODY) {
        None
    } else {
        let busy = "too many long bodies are read: try again later, with `Content-Length`";
        let taken = door.long_bodies.try_acquire();
        Some(taken.map_err(|_| WebError::busy(busy, Duration::from_secs(1)))?)
    };
    match timeout(BODY, Limited::new(body, max).collect()).await {
        Ok(Ok(read)) => Ok((read.to_bytes(), place)),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(_)) => Err(WebError::invalid("the body ends too early")),
        Err(_) => Err(WebError::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_too_slow",
            "the body takes longer than 30 s: send it faster",
        )),
    }
}
