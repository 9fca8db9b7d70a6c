//! The error of a request that was refused or failed.

use std::error::Error as _;
use std::time::Duration;

use rockbot_core::tool::{ToolError, ToolErrorCode};

/// The reason why a request was not made, or has no usable response. No text shows a query, a
/// password or a header.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// The text is not a URL.
    #[error("`{text}` is not a URL: give an absolute one, such as `https://example.org/page`")]
    NotAUrl {
        /// The beginning of the text.
        text: String,
    },
    /// The URL is too long.
    #[error("the URL is longer than {max} bytes: send less in it")]
    UrlTooLong {
        /// Maximum length, in bytes.
        max: usize,
    },
    /// The scheme is neither `http` nor `https`.
    #[error("`{scheme}:` cannot be fetched: only http and https can")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The URL contains a user name or a password.
    #[error("the URL contains a user name or password: leave them out")]
    UserInfo,
    /// The port is not allowed.
    #[error("port {port} of `{host}` is not allowed: only 80 and 443 are, unless the operator allows `{host}:{port}`")]
    Port {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// The host has an address that is not on the internet.
    #[error("`{host}` is not on the internet: the operator can allow an internal host by its name")]
    Internal {
        /// The host.
        host: String,
    },
    /// The host has an address that is never dialled, such as the address of a metadata server.
    #[error("`{host}` has an address that is never allowed, such as a link-local one")]
    Forbidden {
        /// The host.
        host: String,
    },
    /// A redirect was refused, or the request that it asked for failed.
    #[error("redirect {hop} to `{target}` {}: {cause}", if .cause.is_refusal() { "was refused" } else { "failed" })]
    Redirect {
        /// Number of the redirect, from 1.
        hop: usize,
        /// The target, without its query.
        target: String,
        /// The reason.
        cause: Box<Self>,
    },
    /// There were too many redirects.
    #[error("more than {max} redirects: the last one was to `{target}`")]
    TooManyRedirects {
        /// Maximum number of redirects.
        max: usize,
        /// The target, without its query.
        target: String,
    },
    /// A redirect leads from https to http.
    #[error("it leads from https to http")]
    Downgrade,
    /// A redirect would send the body of a request to another origin.
    #[error("it would send the request's body to another server")]
    BodyElsewhere,
    /// The redirect names no target.
    #[error("`{host}` answered with a redirect without a usable target")]
    NoTarget {
        /// The host.
        host: String,
    },
    /// The response's header fields are too large.
    #[error("`{host}` answered with more than {max} bytes of header fields")]
    Headers {
        /// The host.
        host: String,
        /// Maximum size, in bytes.
        max: usize,
    },
    /// The response has a content encoding that was not asked for.
    #[error("`{host}` answered in the content encoding `{encoding}`, which was not asked for")]
    Encoding {
        /// The host.
        host: String,
        /// The encoding.
        encoding: String,
    },
    /// The response does not fit its content encoding.
    #[error("the response of `{host}` is damaged: it is not valid gzip")]
    Damaged {
        /// The host.
        host: String,
    },
    /// The request took too long.
    #[error("`{host}` did not answer completely within {} seconds", .limit.as_secs_f32())]
    Timeout {
        /// The host.
        host: String,
        /// The time limit of the request, with all its redirects.
        limit: Duration,
    },
    /// The connection broke after the request was sent.
    #[error("the connection to `{host}` broke: {cause}")]
    Broken {
        /// The host.
        host: String,
        /// The reason, in the words of the HTTP client.
        cause: String,
    },
    /// The server could not be reached.
    #[error("`{host}` could not be reached: {cause}")]
    Unreachable {
        /// The host.
        host: String,
        /// The reason, in the words of the HTTP client.
        cause: String,
    },
}

impl EgressError {
    /// Returns the error of the HTTP client without its URL, or the refusal of the resolver that is
    /// behind it.
    pub(super) fn of_transport(error: reqwest::Error, host: &str) -> Self {
        let error = error.without_url();
        let mut innermost = error.to_string();
        let mut next = error.source();
        while let Some(source) = next {
            next = source.source();
            match source.downcast_ref::<Self>() {
                Some(Self::Forbidden { host }) => return Self::Forbidden { host: host.clone() },
                Some(Self::Internal { host }) => return Self::Internal { host: host.clone() },
                _ => innermost = source.to_string(),
            }
        }
        let host = host.to_owned();
        let cause = innermost.chars().take(200).collect();
        if error.is_connect() {
            Self::Unreachable { host, cause }
        } else {
            Self::Broken { host, cause }
        }
    }

    /// Returns `true` if the policy refused the request; repeating it does not help.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Redirect { cause, .. } => cause.is_refusal(),
            Self::Scheme { .. }
            | Self::UserInfo
            | Self::Port { .. }
            | Self::Internal { .. }
            | Self::Forbidden { .. }
            | Self::Downgrade
            | Self::BodyElsewhere => true,
            _ => false,
        }
    }

    /// Returns `true` if a server may have got the request, or the request before a redirect.
    #[cfg_attr(
        not(any(feature = "rest", feature = "a2a")),
        expect(dead_code, reason = "other requests only read")
    )]
    pub(crate) fn was_sent(&self) -> bool {
        match self {
            Self::NotAUrl { .. } | Self::UrlTooLong { .. } | Self::Unreachable { .. } => false,
            Self::Redirect { .. } => true,
            error => !error.is_refusal(),
        }
    }

    /// Returns `true` if the same request may succeed a little later.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::Redirect { cause, .. } => cause.retry_helps(),
            Self::Timeout { .. } | Self::Broken { .. } | Self::Unreachable { .. } => true,
            _ => false,
        }
    }
}

impl From<EgressError> for ToolError {
    fn from(error: EgressError) -> Self {
        let code = match &error {
            EgressError::NotAUrl { .. } | EgressError::UrlTooLong { .. } => ToolErrorCode::InvalidArguments,
            EgressError::Timeout { .. } => ToolErrorCode::Timeout,
            error if error.is_refusal() => ToolErrorCode::Denied,
            _ => ToolErrorCode::ExecutionFailed,
        };
        let is_retryable = error.retry_helps();
        Self::new(code, error.to_string()).with_retryable(is_retryable)
    }
}
