//! An agent as it is spoken to: its requests in each binding, and its answers.

use std::time::Duration;

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use rockbot_core::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use url::Url;

use super::MAX_ANSWER;
use super::card::{Binding, Interface};
use super::credentials::Credentials;
use super::error::{BUSY, PeerError, TASK_NOT_FOUND};
use super::events::Events;
use crate::a2a_wire::{StreamItem, Task, v03, v03_client};
use crate::egress::{self, EgressClient, EgressPieces, EgressRequest};

/// An agent whose card was read.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) interface: Interface,
    pub(super) streams: bool,
    /// The credentials, if the interface has the origin of the agent's URL.
    pub(super) credentials: Credentials,
    /// Time at which the card was read.
    pub(super) read_at: Timestamp,
}

/// An operation on a task.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation<'a> {
    /// Sends a message: the JSON of the parameters.
    Send(&'a str),
    SendStreaming(&'a str),
    /// Asks for the task of this id.
    Get(&'a str),
    Cancel(&'a str),
    Subscribe(&'a str),
}

impl Operation<'_> {
    fn method(self) -> &'static str {
        match self {
            Self::Send(_) => "SendMessage",
            Self::SendStreaming(_) => "SendStreamingMessage",
            Self::Get(_) => "GetTask",
            Self::Cancel(_) => "CancelTask",
            Self::Subscribe(_) => "SubscribeToTask",
        }
    }

    fn is_stream(self) -> bool {
        matches!(self, Self::SendStreaming(_) | Self::Subscribe(_))
    }

    fn params(self) -> Value {
        match self {
            Self::Send(params) | Self::SendStreaming(params) => serde_json::from_str(params).unwrap_or_default(),
            Self::Get(id) => json!({"id": id, "historyLength": 0}),
            Self::Cancel(id) | Self::Subscribe(id) => json!({"id": id}),
        }
    }
}

impl Peer {
    /// Performs an operation that has one answer, waiting up to `limit` for it.
    pub(super) async fn call(
        &self,
        client: &EgressClient,
        operation: Operation<'_>,
        limit: Duration,
    ) -> Result<StreamItem, PeerError> {
        let pieces = self.open(client, operation, limit).await?;
        self.answer(pieces, operation, limit).await
    }

    /// Performs an operation that has a stream as its answer. An agent that answers with one item
    /// instead is understood, too.
    pub(super) async fn stream(
        &self,
        client: &EgressClient,
        operation: Operation<'_>,
        limit: Duration,
    ) -> Result<Result<Events, StreamItem>, PeerError> {
        let pieces = self.open(client, operation, limit).await?;
        if pieces.status().is_success() && pieces.is_event_stream() {
            return Ok(Ok(Events::new(pieces)));
        }
        self.answer(pieces, operation, limit).await.map(Err)
    }

    /// Reads an item of a stream.
    pub(super) fn item(&self, data: &str) -> Result<StreamItem, PeerError> {
        match self.interface.binding {
            Binding::Rest => serde_json::from_str(data).map_err(|_| PeerError::Unreadable),
            Binding::Rpc => serde_json::from_str(result_of(data)?.get()).map_err(|_| PeerError::Unreadable),
            Binding::OldRpc => v03_client::item(result_of(data)?.get()).map_err(|_| PeerError::Unreadable),
        }
    }

    /// Sends the request of an operation. A token that is refused is asked for anew once: the agent
    /// has done nothing then.
    async fn open(
        &self,
        client: &EgressClient,
        operation: Operation<'_>,
        limit: Duration,
    ) -> Result<EgressPieces, PeerError> {
        let mut request = self.request(operation);
        let sent = self.credentials.set(&mut request, client, None).await?;
        let pieces = client.open(request.clone(), limit).await?;
        if !self.credentials.is_refused(pieces.status()) {
            return Ok(pieces);
        }
        self.credentials.set(&mut request, client, sent.as_ref()).await?;
        Ok(client.open(request, limit).await?)
    }

    async fn answer(
        &self,
        pieces: EgressPieces,
        operation: Operation<'_>,
        limit: Duration,
    ) -> Result<StreamItem, PeerError> {
        let status = pieces.status();
        let body = pieces.rest(MAX_ANSWER, limit).await?.ok_or(PeerError::TooLong)?;
        let text = std::str::from_utf8(&body).map_err(|_| PeerError::Unreadable)?;
        if !status.is_success() {
            return Err(refusal(text).unwrap_or(PeerError::Status(status.as_u16())));
        }
        let is_task = matches!(operation, Operation::Get(_) | Operation::Cancel(_));
        let task = |json: &str| serde_json::from_str::<Task>(json).map(StreamItem::Task);
        let read = match self.interface.binding {
            Binding::Rest if is_task => task(text),
            Binding::Rpc if is_task => task(result_of(text)?.get()),
            _ => return self.item(text),
        };
        read.map_err(|_| PeerError::Unreadable)
    }

    fn request(&self, operation: Operation<'_>) -> EgressRequest {
        let mut params = operation.params();
        if let Some(tenant) = &self.interface.tenant {
            params["tenant"] = json!(tenant);
        }
        let (method, url, body) = match self.interface.binding {
            Binding::Rest => self.rest(operation, &params),
            Binding::Rpc => (
                Method::POST,
                self.interface.url.clone(),
                Some(rpc(operation.method(), &params)),
            ),
            Binding::OldRpc => {
                let method = v03::old_method(operation.method()).unwrap_or_default();
                (
                    Method::POST,
                    self.interface.url.clone(),
                    Some(rpc(method, &v03_client::params(params))),
                )
            }
        };
        EgressRequest {
            method,
            url,
            headers: self.headers(operation, body.is_some()),
            origin_headers: HeaderMap::new(),
            body: body.map(|body| Bytes::from(body.to_string())),
        }
    }

    /// Returns the method, address and body of an operation of plain HTTP.
    fn rest(&self, operation: Operation<'_>, params: &Value) -> (Method, Url, Option<Value>) {
        let encoded = |id: &str| utf8_percent_encode(id, NON_ALPHANUMERIC).to_string();
        let (method, path, body) = match operation {
            Operation::Send(_) => (Method::POST, "message:send".to_owned(), Some(params.clone())),
            Operation::SendStreaming(_) => (Method::POST, "message:stream".to_owned(), Some(params.clone())),
            Operation::Get(id) => (Method::GET, format!("tasks/{}", encoded(id)), None),
            Operation::Cancel(id) => (Method::POST, format!("tasks/{}:cancel", encoded(id)), Some(json!({}))),
            Operation::Subscribe(id) => (
                Method::POST,
                format!("tasks/{}:subscribe", encoded(id)),
                Some(json!({})),
            ),
        };
        let mut url = self.interface.url.clone();
        let tenant = self
            .interface
            .tenant
            .as_deref()
            .map(|tenant| format!("/{}", encoded(tenant)));
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}{}/{path}", tenant.unwrap_or_default()));
        if matches!(operation, Operation::Get(_)) {
            url.query_pairs_mut().append_pair("historyLength", "0");
        }
        (method, url, body)
    }

    fn headers(&self, operation: Operation<'_>, has_body: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let version = if self.interface.binding == Binding::OldRpc {
            "0.3"
        } else {
            "1.0"
        };
        headers.insert("a2a-version", HeaderValue::from_static(version));
        headers.insert(USER_AGENT, HeaderValue::from_static(egress::USER_AGENT));
        if has_body {
            let kind = if self.interface.binding == Binding::Rest {
                "application/a2a+json"
            } else {
                "application/json"
            };
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if operation.is_stream() {
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        }
        headers
    }
}

fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Returns the result in an answer of JSON-RPC.
fn result_of(text: &str) -> Result<&RawValue, PeerError> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(default, borrow)]
        result: Option<&'a RawValue>,
    }
    if let Some(refusal) = refusal(text) {
        return Err(refusal);
    }
    let answer: Answer<'_> = serde_json::from_str(text).map_err(|_| PeerError::Unreadable)?;
    answer.result.ok_or(PeerError::Unreadable)
}

/// Returns the error of the protocol in an answer, of either binding.
fn refusal(text: &str) -> Option<PeerError> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        error: Option<Refused>,
    }
    #[derive(Deserialize)]
    struct Refused {
        #[serde(default)]
        code: i64,
        #[serde(default)]
        message: String,
        #[serde(default)]
        details: Option<Vec<Detail>>,
    }
    #[derive(Deserialize)]
    struct Detail {
        #[serde(default)]
        reason: String,
    }
    let error = serde_json::from_str::<Answer>(text).ok()?.error?;
    let has_reason = |reason: &str| error.details.iter().flatten().any(|detail| detail.reason == reason);
    // The codes of plain HTTP are its statuses.
    let code = match error.code {
        404 if has_reason("TASK_NOT_FOUND") => TASK_NOT_FOUND,
        429 | 503 => BUSY,
        401 | 403 => return Some(PeerError::Status(error.code as u16)),
        code => code,
    };
    Some(PeerError::Refused {
        code,
        message: error.message,
    })
}
