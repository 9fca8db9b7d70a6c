//! The kind of a server's error: by its code, by its wording, else by its status.

use rockbot_core::chat::{ChatErrorKind, Overflow};

use super::overflow::{is_overflow, is_rate, sizes};
use super::refused_form::advice_for;

/// The facts in an error body that decide its kind, whatever the dialect it was written in.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorFacts {
    /// Message.
    pub(crate) text: String,
    /// `code`, in lower case.
    pub(crate) code: String,
    /// `type`, in lower case.
    pub(crate) kind: String,
    /// A code that is an HTTP status, as OpenRouter's are.
    pub(crate) status: Option<u16>,
    /// `true` if the body names the flagged content: the error is a content filter's.
    pub(crate) is_flagged: bool,
    /// `true` if the limit is on requests in flight, not on credit: OpenRouter answers 402 for both.
    pub(crate) is_in_flight_limit: bool,
    /// The server's name for the request.
    pub(crate) request_id: Option<String>,
    /// The sizes of the window and of the request, as llama.cpp names them.
    pub(crate) sizes: Overflow,
}

impl ErrorFacts {
    /// Returns the kind of this error, which the server sent with `status`, if it sent one.
    ///
    /// An overflow is looked for first, because servers report it with many codes; then the code
    /// decides, then the status.
    pub(crate) fn kind(&self, status: Option<u16>) -> ChatErrorKind {
        let text = self.text.to_lowercase();
        let codes = [self.code.as_str(), self.kind.as_str()];
        let may_overflow = !matches!(status, Some(401..=403 | 429));
        if may_overflow && (is_overflow(&text, codes) || self.is_bare(status)) {
            return ChatErrorKind::ContextOverflow;
        }
        if self.is_flagged {
            return ChatErrorKind::ContentFiltered;
        }
        if self.is_in_flight_limit || (status == Some(413) && is_rate(&text, codes)) {
            return ChatErrorKind::RateLimited;
        }
        if is_unparsed_output(&text) {
            return ChatErrorKind::InvalidResponse;
        }
        if advice_for(&text).is_some() {
            return ChatErrorKind::InvalidRequest;
        }
        let coded = codes.into_iter().find_map(kind_of_code);
        coded.unwrap_or_else(|| match status {
            Some(status) => kind_of_status(status),
            None if self.kind == "invalid_request_error" => ChatErrorKind::InvalidRequest,
            None => ChatErrorKind::Overloaded,
        })
    }

    /// Returns the sizes of the context window and of the request, as far as an overflow reports them.
    pub(crate) fn overflow(&self) -> Overflow {
        let said = sizes(&self.text.to_lowercase());
        Overflow::new(self.sizes.limit.or(said.limit), self.sizes.asked.or(said.asked))
    }

    /// Returns `true` for a bare status without a body, as Cerebras reports an overflow.
    fn is_bare(&self, status: Option<u16>) -> bool {
        matches!(status, Some(400 | 413)) && self.text.is_empty() && self.code.is_empty() && self.kind.is_empty()
    }
}

/// Returns `true` if the server could not parse the text of its own model. llama.cpp reports that
/// like a failure of the server, with status 500.
pub(super) fn is_unparsed_output(text: &str) -> bool {
    text.contains("model produced output that does not match the expected")
        || text.contains("failed to parse input at pos")
}

fn kind_of_code(code: &str) -> Option<ChatErrorKind> {
    Some(match code {
        "insufficient_quota" | "billing_error" | "billing_hard_limit_reached" | "insufficient_balance" => {
            ChatErrorKind::QuotaExceeded
        }
        "content_filter" | "content_policy_violation" | "responsibleaipolicyviolation" | "invalid_prompt" => {
            ChatErrorKind::ContentFiltered
        }
        "invalid_api_key" | "authentication_error" | "permission_error" | "permission_denied" => ChatErrorKind::Auth,
        "model_not_found" | "not_found_error" => ChatErrorKind::NotFound,
        "rate_limit_exceeded" | "rate_limit_error" | "slow_down" => ChatErrorKind::RateLimited,
        "overloaded_error" | "server_is_overloaded" | "server_error" | "api_error" | "internal_server_error" => {
            ChatErrorKind::Overloaded
        }
        "timeout_error" => ChatErrorKind::TimedOut,
        _ => return None,
    })
}

fn kind_of_status(status: u16) -> ChatErrorKind {
    match status {
        401 | 403 => ChatErrorKind::Auth,
        402 => ChatErrorKind::QuotaExceeded,
        // A redirect is not followed: it would lose the request's body, or take the key elsewhere.
        300..=399 | 404 | 405 | 410 | 501 => ChatErrorKind::NotFound,
        408 => ChatErrorKind::TimedOut,
        409 => ChatErrorKind::Overloaded,
        413 => ChatErrorKind::ContextOverflow,
        429 => ChatErrorKind::RateLimited,
        500.. => ChatErrorKind::Overloaded,
        _ => ChatErrorKind::InvalidRequest,
    }
}
