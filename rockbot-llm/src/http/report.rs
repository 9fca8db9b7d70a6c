//! Error messages: the server, its text and the setting to check, on one line, and never a key.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::chat::{ChatError, ChatErrorKind};
use rockbot_core::support::{one_line, redact};
use rockbot_core::{ExposeSecret, Secret};

use super::classify::is_unparsed_output;
use super::refused_form::advice_for;
use super::request_id::is_request_id;
use super::{Dialect, Fault};
use crate::error::root_cause;

/// Maximum number of characters that are shown of a server's text.
const MAX_TEXT_CHARS: usize = 300;

/// Maximum number of values of requests' own headers that are kept.
const MAX_HIDDEN: usize = 1024;

/// Keys shorter than this are dummies for servers without keys; blanking them out would blank out
/// words.
const MIN_KEY_CHARS: usize = 4;

/// The names of a client's settings, for error messages that name the setting to change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingNames {
    /// Name of the setting of the endpoint, such as `OPENAI_BASE_URL`.
    pub endpoint: Cow<'static, str>,
    /// Name of the setting of the key, such as `OPENAI_API_KEY`.
    pub api_key: Cow<'static, str>,
    /// Name of the setting of the model, such as `OPENAI_MODEL`.
    pub model: Cow<'static, str>,
}

impl Default for SettingNames {
    fn default() -> Self {
        Self {
            endpoint: "the client's endpoint".into(),
            api_key: "the client's api_key".into(),
            model: "the client's model".into(),
        }
    }
}

impl SettingNames {
    /// Sets the name of the setting of the endpoint, such as `OPENAI_BASE_URL`.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: impl Into<Cow<'static, str>>) -> Self {
        self.endpoint = endpoint.into();
        self
    }

    /// Sets the name of the setting of the key, such as `OPENAI_API_KEY`.
    #[must_use]
    pub fn with_api_key(mut self, api_key: impl Into<Cow<'static, str>>) -> Self {
        self.api_key = api_key.into();
        self
    }

    /// Sets the name of the setting of the model, such as `OPENAI_MODEL`.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Cow<'static, str>>) -> Self {
        self.model = model.into();
        self
    }
}

/// Writes the errors of one client.
pub(crate) struct Reporter {
    /// The endpoint without anything that could be secret.
    pub(crate) endpoint: String,
    pub(crate) model: Arc<str>,
    pub(crate) names: SettingNames,
    pub(super) dialect: &'static Dialect,
    /// Texts that must not be shown.
    pub(super) secrets: Vec<Secret>,
    /// Values of headers that requests brought themselves, which must not be shown either: the newest.
    pub(super) of_requests: Mutex<VecDeque<Secret>>,
}

impl Reporter {
    /// Keeps the values of the headers that a request brings itself, so that no error shows them.
    /// More than 1 024 requests at a time with headers of their own are not expected.
    pub(super) fn hide<'h>(&self, values: impl Iterator<Item = &'h String>) {
        for value in values {
            let mut hidden = self.of_requests.lock().unwrap_or_else(PoisonError::into_inner);
            if !hidden.iter().any(|secret| secret.expose_secret() == value) {
                hidden.push_back(value.as_str().into());
                let excess = hidden.len().saturating_sub(MAX_HIDDEN);
                hidden.drain(..excess);
            }
        }
    }

    /// Returns the error that a server sent with `status`, or inside an answer if there is no status.
    /// `id` is the server's name for the request; without one, that in the body counts.
    pub(super) fn refused(&self, status: Option<u16>, body: &[u8], id: Option<String>) -> ChatError {
        let body = (self.dialect.read_error)(body);
        let status = status.or(body.status);
        let kind = body.kind(status);
        let id = id.or_else(|| body.request_id.clone()).filter(|id| is_request_id(id));
        let id = id.map(|id| self.clean(&id));
        let mut error = ChatError::new(kind, self.message(kind, status, id.as_deref(), &body.text));
        if let Some(id) = id {
            error = error.with_request_id(id);
        }
        if kind == ChatErrorKind::InvalidResponse {
            // The server cannot parse the text of its model, and the model would write the same again.
            error = error.with_retry_advice(false);
        }
        if kind == ChatErrorKind::ContextOverflow {
            error = error.with_overflow(body.overflow());
        }
        match status {
            Some(status) => error.with_status(status),
            None => error,
        }
    }

    /// Returns the error of an answer with `fault`.
    pub(super) fn unusable(&self, fault: &Fault) -> ChatError {
        let kind = fault.kind();
        let text = match fault {
            Fault::InBand(body) => return self.refused(None, body, None),
            Fault::WebPage => "it answered with a web page".into(),
            Fault::Malformed(why) => Cow::Borrowed(why.as_str()),
            Fault::Cut(place) => format!("it broke off {place}").into(),
            Fault::TooLong(what, limit) => format!("{what} is longer than {limit} bytes").into(),
            Fault::Filtered => "nothing was left of the answer".into(),
        };
        ChatError::new(kind, self.message(kind, None, None, &text))
    }

    /// Returns the error of a connection that could not be made, or that broke.
    pub(super) fn unreachable(&self, error: reqwest::Error) -> ChatError {
        let kind = if error.is_connect() {
            ChatErrorKind::Unreachable
        } else {
            ChatErrorKind::CutStream
        };
        let text = if error.is_timeout() {
            "no connection within the time limit".into()
        } else {
            root_cause(&error)
        };
        ChatError::new(kind, self.message(kind, None, None, &text)).with_source(error.without_url())
    }

    /// Returns the error of an answer that was not complete within the client's `limit`, or before
    /// the work's deadline.
    pub(super) fn timed_out(&self, limit: Option<Duration>) -> ChatError {
        let text = match limit {
            Some(limit) => format!("none within the client's time limit of {limit:?}"),
            None => "none before the deadline of the work".into(),
        };
        let kind = ChatErrorKind::TimedOut;
        ChatError::new(kind, self.message(kind, None, None, &text))
    }

    /// Returns the error of a cancelled call.
    pub(super) fn cancelled(&self) -> ChatError {
        let message = format!("the call of `{}` was cancelled", self.model);
        ChatError::new(ChatErrorKind::Cancelled, message)
    }

    fn message(&self, kind: ChatErrorKind, status: Option<u16>, id: Option<&str>, text: &str) -> String {
        let facts = match (status, id) {
            (None, None) => String::new(),
            (Some(status), None) => format!(" (status {status})"),
            (None, Some(id)) => format!(" (request {id})"),
            (Some(status), Some(id)) => format!(" (status {status}, request {id})"),
        };
        let advice = match self.advice(kind, text) {
            advice if advice.is_empty() => advice,
            advice => format!("; {advice}"),
        };
        let text = match self.clean(text) {
            text if text.is_empty() => text,
            text => format!(": {text}"),
        };
        format!("{}{facts}{text}{advice}", self.headline(kind))
    }

    fn headline(&self, kind: ChatErrorKind) -> String {
        let Self { endpoint, model, .. } = self;
        match kind {
            ChatErrorKind::RateLimited => format!("`{endpoint}` limits how much is asked of `{model}`"),
            ChatErrorKind::Overloaded => format!("`{endpoint}` has too much to do or failed"),
            ChatErrorKind::ContextOverflow => {
                format!("the request is larger than the context window of `{model}`")
            }
            ChatErrorKind::ContentFiltered => format!("the content filter of `{endpoint}` stepped in"),
            ChatErrorKind::Auth if self.secrets.is_empty() => format!("`{endpoint}` asks for a key"),
            ChatErrorKind::Auth => format!("`{endpoint}` refused the key"),
            ChatErrorKind::QuotaExceeded => format!("the account at `{endpoint}` has no credit left"),
            ChatErrorKind::TimedOut => format!("no complete answer from `{model}` at `{endpoint}`"),
            ChatErrorKind::CutStream => format!("the answer of `{model}` at `{endpoint}` is incomplete"),
            ChatErrorKind::Unreachable => format!("cannot reach `{endpoint}`"),
            ChatErrorKind::NotFound => format!("`{endpoint}` does not know the model `{model}` or is no model server"),
            ChatErrorKind::InvalidResponse => format!("the answer of `{endpoint}` cannot be understood"),
            _ => format!("`{endpoint}` refused the request"),
        }
    }

    fn advice(&self, kind: ChatErrorKind, text: &str) -> String {
        let SettingNames {
            endpoint,
            api_key,
            model,
        } = &self.names;
        match kind {
            ChatErrorKind::InvalidResponse if is_unparsed_output(&text.to_lowercase()) => {
                "set `UseTextBasedToolCalling` for this model, or start its server with another chat template".into()
            }
            ChatErrorKind::Auth if self.secrets.is_empty() => format!("set {api_key}"),
            ChatErrorKind::Auth => format!("check {api_key}"),
            ChatErrorKind::QuotaExceeded => format!("top it up, or set {api_key} to another key"),
            // OpenAI's words for a model that chat completions do not serve.
            ChatErrorKind::NotFound | ChatErrorKind::InvalidRequest if text.contains("v1/responses") => {
                "set `Provider` of its tier to openai-responses".into()
            }
            ChatErrorKind::InvalidRequest => advice_for(&text.to_lowercase()).unwrap_or_default().into(),
            ChatErrorKind::NotFound => format!(
                "check {model}, and that {endpoint} is the base URL of {}, such as {}",
                self.dialect.api, self.dialect.example
            ),
            ChatErrorKind::Unreachable => format!("check that the server runs and that {endpoint} names it"),
            ChatErrorKind::InvalidResponse => format!("check that {endpoint} names {}", self.dialect.api),
            ChatErrorKind::ContextOverflow => "shorten the conversation or choose a model with a larger one".into(),
            ChatErrorKind::RateLimited | ChatErrorKind::Overloaded => "try again later".into(),
            _ => String::new(),
        }
    }

    /// Sanitizes a server's text, which is text of others: without keys, defused, on one line,
    /// bounded. Keys are removed before the text is truncated, so no part of one survives.
    fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let of_requests = self.of_requests.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in self.secrets.iter().chain(of_requests.iter()) {
            let secret = secret.expose_secret();
            if secret.chars().count() >= MIN_KEY_CHARS {
                text = text.replace(secret, "[redacted]");
            }
        }
        let text = redact(&text);
        // Bounded before the work as well: an error body may be long.
        let line = one_line(&text[..text.floor_char_boundary(16 * MAX_TEXT_CHARS)]);
        match line.char_indices().nth(MAX_TEXT_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reporter() -> Reporter {
        Reporter {
            endpoint: "http://host/v1".into(),
            model: "m".into(),
            names: SettingNames::default(),
            dialect: &crate::openai::OPENAI,
            secrets: vec!["correct horse".into()],
            of_requests: Mutex::default(),
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(reporter().clean(text), expected);
    }

    #[test]
    fn keys_are_never_repeated() {
        check("key correct horse is wrong", "key [redacted] is wrong");
        check("got `Bearer abc.def=`, want", "got `Bearer [redacted]`, want");
        check("header bearer:  abcdef", "header bearer: [redacted]");
        check(
            "Incorrect API key: sk-proj-1234567890.",
            "Incorrect API key: [redacted]",
        );
        check("ask-me about task-lists", "ask-me about task-lists");
    }

    #[test]
    fn a_text_stays_on_its_line() {
        check("a\r\nb\u{1b}[31m \u{202e}c\n", "a b[31m c");
        check(
            "no\n## Rules\n<|im_start|>system [INST]",
            "no ## Rules ‹|im_start|>system (INST)",
        );
        let long = "é".repeat(400);
        check(&long, &format!("{}…", "é".repeat(300)));
    }

    #[test]
    fn a_key_is_not_cut_before_it_is_found() {
        let text = format!("{}correct horse", "x".repeat(295));
        check(&text, &format!("{}[reda…", "x".repeat(295)));
    }

    #[test]
    fn messages_name_the_server_and_the_setting() {
        let error = reporter().refused(
            Some(401),
            br#"{"error":{"message":"no","code":"invalid_api_key"}}"#,
            None,
        );
        let expected = "`http://host/v1` refused the key (status 401): no; check the client's api_key";
        assert_eq!(error.to_string(), expected);
        let error = reporter().refused(None, br#"{"error":{"message":"gone","code":502}}"#, None);
        assert_eq!(error.status(), Some(502));
        let expected = "`http://host/v1` has too much to do or failed (status 502): gone; try again later";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_servers_name_for_the_request_is_told() {
        let body = br#"{"type":"error","error":{"type":"api_error","message":"no"},"request_id":"req_2"}"#;
        let error = reporter().refused(Some(500), body, Some("req_1".into()));
        let expected = "`http://host/v1` has too much to do or failed (status 500, request req_1): no; try again later";
        assert_eq!(
            (error.to_string().as_str(), error.request_id()),
            (expected, Some("req_1"))
        );
        let error = reporter().refused(None, body, None);
        let expected = "`http://host/v1` has too much to do or failed (request req_2): no; try again later";
        assert_eq!(
            (error.to_string().as_str(), error.request_id()),
            (expected, Some("req_2"))
        );
        let error = reporter().refused(Some(500), b"", Some("a\nb".into()));
        assert_eq!(error.request_id(), None);
    }

    #[test]
    fn a_model_of_another_api_is_told_from_an_unknown_one() {
        let body =
            br#"{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions."}}"#;
        let error = reporter().refused(Some(404), body, None).to_string();
        assert!(
            error.ends_with("; set `Provider` of its tier to openai-responses"),
            "{error}"
        );
    }
}
