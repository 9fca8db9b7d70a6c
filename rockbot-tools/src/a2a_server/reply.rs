//! Answers of both bindings: a document, or a stream of events.

use std::time::Duration;

use futures_util::stream::unfold;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::time::timeout;

use super::form::ItemForm;
use super::stream::TaskStream;
use crate::a2a_wire::StreamItem;
use crate::http_server::Answer;

/// Interval of the signs of life in an idle stream. They show whether the client is gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// An answer of an operation.
#[derive(Debug)]
pub(super) enum Reply {
    Document {
        status: StatusCode,
        kind: &'static str,
        body: Bytes,
    },
    Stream(Box<TaskStream>, ItemForm),
}

impl Reply {
    /// Creates a document of the JSON-RPC binding.
    pub(super) fn json(body: Vec<u8>) -> Self {
        Self::Document {
            status: StatusCode::OK,
            kind: "application/json",
            body: body.into(),
        }
    }

    /// Sets the status of HTTP, which only documents have.
    pub(super) fn with_status(mut self, given: StatusCode) -> Self {
        if let Self::Document { status, .. } = &mut self {
            *status = given;
        }
        self
    }

    /// Converts the answer into an HTTP response.
    pub(super) fn into_answer(self) -> Answer {
        match self {
            Self::Document { status, kind, body } => document(status, kind, body),
            Self::Stream(stream, form) => streamed(stream, form),
        }
    }
}

/// Creates an answer with this body.
pub(super) fn document(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    answer
}

fn streamed(stream: Box<TaskStream>, form: ItemForm) -> Answer {
    // One item at a time, once the client has taken the item before.
    let frames = unfold((stream, form), async |(mut stream, form)| {
        let bytes = match timeout(SIGN_OF_LIFE, stream.next()).await {
            Ok(item) => event(&item?, &form),
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok(Frame::data(bytes)), (stream, form)))
    });
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

fn event(item: &StreamItem, form: &ItemForm) -> Bytes {
    let json = match form {
        ItemForm::Rpc(form) => form.result(item),
        ItemForm::Rest => {
            serde_json::to_vec(item).expect("the protocol's objects have no maps with keys that are no text")
        }
    };
    // JSON has no line ends of its own.
    [b"data: ", &*json, b"\n\n"].concat().into()
}
