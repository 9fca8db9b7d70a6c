//! The protocol's errors, with their codes of JSON-RPC and HTTP.

use std::fmt;

use serde_json::{Value, json};

/// The domain of the protocol's reasons.
const DOMAIN: &str = "a2a-protocol.org";

/// An error that the client gets, with words that tell the client the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct A2aError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

/// The kind of an error, which determines its codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    /// Too much is asked at once. The protocol has no such kind.
    Busy,
    TaskNotFound,
    TaskNotCancelable,
    Unsupported,
    ContentType,
    VersionNotSupported,
}

impl ErrorKind {
    /// Returns the code of JSON-RPC.
    fn code(self) -> i32 {
        match self {
            Self::Parse => -32_700,
            Self::InvalidRequest => -32_600,
            Self::MethodNotFound => -32_601,
            Self::InvalidParams => -32_602,
            Self::Internal => -32_603,
            Self::Busy => -32_000,
            Self::TaskNotFound => -32_001,
            Self::TaskNotCancelable => -32_002,
            Self::Unsupported => -32_004,
            Self::ContentType => -32_005,
            Self::VersionNotSupported => -32_009,
        }
    }

    /// Returns the status of HTTP, as of version 1.0.1, and its name.
    pub(crate) fn http(self) -> (u16, &'static str) {
        match self {
            Self::TaskNotFound | Self::MethodNotFound => (404, "NOT_FOUND"),
            Self::TaskNotCancelable | Self::Unsupported | Self::VersionNotSupported => (400, "FAILED_PRECONDITION"),
            Self::Parse | Self::InvalidRequest | Self::InvalidParams | Self::ContentType => (400, "INVALID_ARGUMENT"),
            Self::Busy => (429, "RESOURCE_EXHAUSTED"),
            Self::Internal => (500, "INTERNAL"),
        }
    }

    /// Returns the reason that stands beside the code; none for the codes of JSON-RPC itself.
    fn reason(self) -> Option<&'static str> {
        Some(match self {
            Self::Busy => "BUSY",
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::Unsupported => "UNSUPPORTED_OPERATION",
            Self::ContentType => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
            Self::Parse | Self::InvalidRequest | Self::MethodNotFound | Self::InvalidParams | Self::Internal => {
                return None;
            }
        })
    }
}

impl A2aError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, message)
    }

    /// Creates the error for a task that does not exist or belongs to another caller. The two cases
    /// look alike to a client.
    pub(crate) fn no_task() -> Self {
        Self::new(
            ErrorKind::TaskNotFound,
            "there is no such task: it ended more than a day ago, or never was",
        )
    }

    /// Returns the `error` of a JSON-RPC answer.
    pub(crate) fn to_rpc(&self) -> Value {
        let mut error = json!({"code": self.kind.code(), "message": self.message});
        if let Some(details) = self.details() {
            error["data"] = details;
        }
        error
    }

    /// Returns the details beside the message, for programs. The codes of JSON-RPC itself have no
    /// details.
    pub(crate) fn details(&self) -> Option<Value> {
        self.kind.reason().map(|reason| json!([info(reason)]))
    }
}

fn info(reason: &str) -> Value {
    json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": DOMAIN})
}

impl fmt::Display for A2aError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
