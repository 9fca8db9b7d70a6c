//! A request from its arrival to its answer: admission, the body within its bounds, the binding.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, StatusCode};
use rockbot_core::BoxError;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::admission::Admission;
use super::caller::A2aCaller;
use super::card::{OLD_PATH, PATH};
use super::content::bytes_of;
use super::operations::Operations;
use super::reply::document;
use super::rest::{self, MEDIA_TYPE, Route};
use super::rpc;
use super::version::Version;
use crate::a2a_wire::{A2aError, ErrorKind};
use crate::http_server::Answer;

/// Maximum length of a body, in bytes.
const MAX_BODY: usize = 4 << 20;

/// Maximum time for a body.
const BODY: Duration = Duration::from_secs(30);

/// Maximum length of a body that is read at any time, in bytes. A longer body needs a permit of
/// `long_bodies`.
const SHORT_BODY: u64 = 64 << 10;

/// Maximum number of longer bodies in memory at once.
const MAX_LONG_BODIES: usize = 16;

/// Time for which clients may keep the card.
const CARD_AGE: &str = "public, max-age=300";

/// The entrance of a server.
pub(super) struct Door {
    pub(super) operations: Arc<Operations>,
    pub(super) admission: Admission,
    long_bodies: Semaphore,
}

/// A refusal before a binding is reached.
struct Refusal(StatusCode, A2aError);

impl Door {
    pub(super) fn new(operations: Arc<Operations>, admission: Admission) -> Self {
        Self {
            operations,
            admission,
            long_bodies: Semaphore::new(MAX_LONG_BODIES),
        }
    }

    /// Answers a request.
    pub(super) async fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        if let Err(reason) = self.admission.check_names(&head.uri, &head.headers) {
            return plain(StatusCode::FORBIDDEN, reason);
        }
        let path = head.uri.path();
        if matches!(path, PATH | OLD_PATH) {
            return self.card(&head.method, &head.headers);
        }
        let Some(caller) = self.admission.caller(&head.headers) else {
            return unauthorized();
        };
        if let Some(file) = path.strip_prefix("/files/") {
            return self.file(&caller, &head.method, file).await;
        }
        let query = head.uri.query().unwrap_or_default();
        let version = version_of(&head.headers, query);
        let route = match (path, Route::find(&head.method, path)) {
            ("" | "/", _) if head.method == Method::POST => None,
            (_, Some(Some(route))) => Some(route),
            ("" | "/", _) | (_, Some(None)) => {
                return plain(StatusCode::METHOD_NOT_ALLOWED, "there is nothing by this method");
            }
            (_, None) => return plain(StatusCode::NOT_FOUND, "there is nothing at this address"),
        };
        match route {
            None => self.rpc(&caller, version, &head.headers, body).await,
            Some(route) => self.rest(&caller, version, route, &head, body).await,
        }
    }

    async fn rpc<B>(
        &self,
        caller: &A2aCaller,
        version: Result<Version, A2aError>,
        headers: &HeaderMap,
        body: B,
    ) -> Answer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let read = if is_json(headers) {
            self.read(body).await
        } else {
            Err(wrong_type(StatusCode::UNSUPPORTED_MEDIA_TYPE, "application/json"))
        };
        let reply = match read {
            Ok((body, _long)) => rpc::answer(&self.operations, caller, version, &body).await,
            Err(Refusal(status, error)) => rpc::error_reply(RawValue::NULL, &error).with_status(status),
        };
        reply.into_answer()
    }

    async fn rest<B>(
        &self,
        caller: &A2aCaller,
        version: Result<Version, A2aError>,
        route: Route<'_>,
        head: &hyper::http::request::Parts,
        body: B,
    ) -> Answer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        // This binding is served in version 1.0 alone.
        let version = version.and_then(|version| match version {
            Version::V1 => Ok(()),
            Version::V03 => Err(A2aError::new(
                ErrorKind::VersionNotSupported,
                "version 0.3 is spoken over JSON-RPC alone: send `A2A-Version: 1.0`",
            )),
        });
        if let Err(error) = version {
            return rest::error_reply(&error).into_answer();
        }
        let takes_body = head.method == Method::POST && matches!(route, Route::Send | Route::Stream | Route::Pushes(_));
        let read = if !takes_body || is_json(&head.headers) {
            self.read(body).await
        } else {
            Err(wrong_type(StatusCode::BAD_REQUEST, MEDIA_TYPE))
        };
        let query = head.uri.query().unwrap_or_default();
        let reply = match read {
            Ok((body, _long)) => rest::answer(&self.operations, caller, (&head.method, route), query, &body).await,
            Err(Refusal(status, error)) => rest::error_reply(&error).with_status(status),
        };
        reply.into_answer()
    }

    /// Reads a body. A long body holds its permit until the request is answered.
    async fn read<B>(&self, body: B) -> Result<(Bytes, Option<SemaphorePermit<'_>>), Refusal>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let hint = body.size_hint().upper();
        if hint.is_some_and(|length| length > MAX_BODY as u64) {
            return Err(too_long());
        }
        let place = if hint.is_some_and(|length| length <= SHORT_BODY) {
            None
        } else {
            Some(self.long_bodies.try_acquire().map_err(|_| busy())?)
        };
        let reading = timeout(BODY, Limited::new(body, MAX_BODY).collect());
        match reading.await {
            Ok(Ok(read)) => Ok((read.to_bytes(), place)),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
            Ok(Err(_)) => Err(Refusal(
                StatusCode::BAD_REQUEST,
                A2aError::new(ErrorKind::InvalidRequest, "the body ends too early"),
            )),
            Err(_) => Err(Refusal(
                StatusCode::REQUEST_TIMEOUT,
                A2aError::new(
                    ErrorKind::InvalidRequest,
                    "the body takes longer than 30 s: send it faster",
                ),
            )),
        }
    }

    fn card(&self, method: &Method, headers: &HeaderMap) -> Answer {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "the agent card is read by GET");
        }
        let card = &self.operations.card;
        let has_it = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        let has_it = has_it.is_some_and(|tags| {
            tags.split(',')
                .any(|tag| tag.trim().trim_start_matches("W/") == card.etag)
        });
        let mut answer = if has_it {
            document(StatusCode::NOT_MODIFIED, "application/json", Bytes::new())
        } else {
            document(StatusCode::OK, "application/json", card.json.clone())
        };
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(CARD_AGE));
        if let Ok(etag) = HeaderValue::from_str(&card.etag) {
            headers.insert(ETAG, etag);
        }
        answer
    }

    /// Answers with a file that a task refers to.
    async fn file(&self, caller: &A2aCaller, method: &Method, path: &str) -> Answer {
        let index = path
            .split_once('/')
            .and_then(|(id, index)| Some((id, index.parse::<usize>().ok()?)));
        let found = match index {
            Some((id, index)) if *method == Method::GET => self.operations.file(caller, id, index).await,
            _ => None,
        };
        let Some((kind, bytes)) = found else {
            return plain(StatusCode::NOT_FOUND, "there is no such file");
        };
        let mut answer = document(StatusCode::OK, "application/octet-stream", bytes);
        let headers = answer.headers_mut();
        // A browser must not show the file as a page of this origin.
        headers.insert(
            HeaderName::from_static("content-disposition"),
            HeaderValue::from_static("attachment"),
        );
        if let Ok(kind) = HeaderValue::from_str(&kind) {
            headers.insert(CONTENT_TYPE, kind);
        }
        answer
    }
}

impl Operations {
    /// Returns the media type and the bytes of the file at an index of a task's answer.
    async fn file(&self, caller: &A2aCaller, task: &str, index: usize) -> Option<(String, Bytes)> {
        let principal = caller.principal();
        let record = self.tasks.find(&principal, task).ok()?;
        let outcome = self.standing(&record).await.ok()?.outcome?;
        let part = outcome.media.get(index)?.as_media()?;
        let bytes = bytes_of(part, &principal, self.media.as_deref()).await?;
        Some((part.media_type.clone(), bytes))
    }
}

fn version_of(headers: &HeaderMap, query: &str) -> Result<Version, A2aError> {
    let parameter = rest::value(query, "A2A-Version");
    let header = headers.get("a2a-version").map(|value| value.to_str().unwrap_or("?"));
    Version::read(header.or(parameter.as_deref()))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    // A page of another origin can send other types without being asked first.
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case(MEDIA_TYPE))
}

fn wrong_type(status: StatusCode, wanted: &str) -> Refusal {
    Refusal(
        status,
        A2aError::new(ErrorKind::ContentType, format!("send the body as `{wanted}`")),
    )
}

fn too_long() -> Refusal {
    Refusal(
        StatusCode::PAYLOAD_TOO_LARGE,
        A2aError::new(
            ErrorKind::InvalidRequest,
            "the body is longer than 4 MiB: send files by reference",
        ),
    )
}

fn busy() -> Refusal {
    Refusal(
        StatusCode::TOO_MANY_REQUESTS,
        A2aError::new(
            ErrorKind::Busy,
            "too many long bodies are read: try again later, with `Content-Length`",
        ),
    )
}

fn plain(status: StatusCode, text: &str) -> Answer {
    let body = json!({"error": {"code": status.as_u16(), "message": text}}).to_string();
    document(status, "application/json", body)
}

fn unauthorized() -> Answer {
    let mut answer = plain(
        StatusCode::UNAUTHORIZED,
        "send the key of a caller as a bearer token, or in the header `X-API-Key`",
    );
    answer
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door")
            .field("admission", &self.admission)
            .finish_non_exhaustive()
    }
}
