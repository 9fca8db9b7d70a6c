//! The errors that clients read: a status of HTTP, a code for programs, and words that say what to
//! do.

use std::time::Duration;

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use rockbot_core::layer::RateLimitExceeded;
use rockbot_core::store::StoreError;
use rockbot_core::turn::{JournalError, TurnError};
use serde_json::{Value, json};

/// Pause that a client is asked for where the server does not know a better one.
const PAUSE: Duration = Duration::from_secs(1);

/// An error for a client.
///
/// Its body has the shape of OpenAI's errors at every address, so a client needs one reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    retry_after: Option<Duration>,
}

impl WebError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn busy(message: impl Into<String>, retry_after: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", message).retried(retry_after)
    }

    pub(crate) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message).retried(PAUSE)
    }

    /// Creates the error for a fault of the host, whose cause is for its operator alone.
    pub(crate) fn internal(error: &(dyn std::error::Error + '_)) -> Self {
        tracing::error!(%error, "a request over HTTP failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "the agent's host failed: its operator finds the cause in its log",
        )
    }

    fn retried(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Returns the body.
    pub(crate) fn body(&self) -> Value {
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            409 => "conflict_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        json!({"error": {"message": self.message, "type": kind, "param": null, "code": self.code}})
    }
}

impl IntoResponse for WebError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        if let Some(after) = self.retry_after {
            let seconds = after.as_millis().div_ceil(1000).max(1);
            headers.insert(
                RETRY_AFTER,
                HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX)),
            );
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<TurnError> for WebError {
    fn from(error: TurnError) -> Self {
        let text = error.to_string();
        match &error {
            TurnError::NotFound(_) | TurnError::NoSuchApproval { .. } => Self::not_found(text),
            TurnError::UnknownAgent(_) => Self::new(StatusCode::NOT_FOUND, "model_not_found", text),
            TurnError::Content(_)
            | TurnError::IdTooLong { .. }
            | TurnError::History(_)
            | TurnError::ModelSettings(_) => Self::invalid(text),
            TurnError::Journal(JournalError::Conflict { .. }) => Self::new(StatusCode::CONFLICT, "conflict", text),
            TurnError::Busy(_) => Self::busy(text, PAUSE),
            TurnError::Halted => Self::unavailable("stopping", text),
            TurnError::Interrupted(_) | TurnError::Elsewhere(_) => Self::unavailable(
                "not_resumed",
                "the agent's host has started and has not resumed the turn yet: try again in a second",
            ),
            TurnError::Layer(cause) if cause.is::<RateLimitExceeded>() => {
                let limited = cause.downcast_ref().map(RateLimitExceeded::retry_after);
                Self::busy(text, limited.unwrap_or(PAUSE))
            }
            error if error.retry_helps() => Self::unavailable("unavailable", "the agent's host is busy: try again"),
            error => Self::internal(error),
        }
    }
}

impl From<StoreError> for WebError {
    fn from(error: StoreError) -> Self {
        if error.retry_helps() {
            Self::unavailable("unavailable", "the agent's store is busy: try again")
        } else {
            Self::internal(&error)
        }
    }
}
