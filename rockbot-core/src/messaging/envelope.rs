//! The envelope: what every message has in common, whatever its body is.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::json_error::describe_json_error;
use super::{Headers, headers};
use crate::id::random_id;
use crate::{CallContext, Clock as _, MessageId, SystemClock, Timestamp};

/// Bodies up to this many bytes are written without growing the buffer.
const USUAL_BODY: usize = 512;

/// A type that travels as the body of a message.
///
/// ```
/// use rockbot_core::messaging::{Message, MessageEnvelope};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Invoice { amount: u32 }
///
/// impl Message for Invoice {
///     const TYPE: &'static str = "billing.Invoice";
///     const TOPIC: Option<&'static str> = Some("billing.invoice");
/// }
///
/// let envelope = MessageEnvelope::of(&Invoice { amount: 7 })?;
/// assert_eq!(envelope.message_type, "billing.Invoice");
/// assert_eq!(envelope.payload::<Invoice>()?.amount, 7);
/// # Ok::<(), rockbot_core::messaging::PayloadError>(())
/// ```
pub trait Message {
    /// The type's name on the wire: by it the receiver finds its handler. Never derived from a path in the
    /// code, so that other languages and other versions can share a bus.
    const TYPE: &'static str;

    /// Where such messages are published unless the sender says otherwise.
    const TOPIC: Option<&'static str> = None;
}

/// A message on its way: a body, and what is known about it.
///
/// A broker carries the body as it is and the rest as properties. Written as JSON its members are camelCase,
/// the body is base64 and the timestamp RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageEnvelope {
    /// The message, as its sender named it: the same id again is the same message delivered again.
    pub message_id: MessageId,
    /// What the body is: [`Message::TYPE`].
    pub message_type: Cow<'static, str>,
    /// Which program sent it; empty when it did not say.
    #[serde(default)]
    pub source: Arc<str>,
    /// The body: JSON text, unless sender and receiver agree otherwise.
    #[serde(with = "super::base64")]
    pub body: Bytes,
    /// When it was made.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
    /// Which request this belongs to: an answer carries the id that came with the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Arc<str>>,
    /// Under which topic the sender wants the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Arc<str>>,
    /// For which program it is meant. Buses route by topic and do not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Arc<str>>,
    /// Everything else: see [`headers`].
    #[serde(default)]
    pub headers: Headers,
}

impl MessageEnvelope {
    /// A message with a fresh id, made now.
    pub fn new(message_type: impl Into<Cow<'static, str>>, body: impl Into<Bytes>) -> Self {
        Self {
            message_id: random_id(),
            message_type: message_type.into(),
            source: Arc::default(),
            body: body.into(),
            timestamp: SystemClock.now(),
            correlation_id: None,
            reply_to: None,
            destination: None,
            headers: Headers::new(),
        }
    }

    /// A message with `payload` as its body.
    ///
    /// # Errors
    ///
    /// Fails when the payload cannot be written as JSON.
    pub fn of<M: Message + Serialize>(payload: &M) -> Result<Self, PayloadError> {
        let mut body = Vec::with_capacity(USUAL_BODY);
        serde_json::to_writer(&mut body, payload).map_err(|source| PayloadError::Unwritable {
            message_type: M::TYPE,
            source,
        })?;
        Ok(Self::new(M::TYPE, body))
    }

    /// The body as an `M`.
    ///
    /// # Errors
    ///
    /// Fails when the message is of another type, and when the body does not fit. Neither gets better by
    /// delivering the message again.
    pub fn payload<M: Message + DeserializeOwned>(&self) -> Result<M, PayloadError> {
        if self.message_type != M::TYPE {
            return Err(PayloadError::WrongType {
                expected: M::TYPE,
                found: self.message_type.to_string(),
            });
        }
        serde_json::from_slice(&self.body).map_err(|source| PayloadError::Malformed {
            message_type: M::TYPE,
            source,
        })
    }

    /// With this id instead of a fresh one.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.message_id = id.into();
        self
    }

    /// Made at this moment.
    #[must_use]
    pub fn with_timestamp(mut self, at: Timestamp) -> Self {
        self.timestamp = at;
        self
    }

    /// Sent by the program `source`.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Arc<str>>) -> Self {
        self.source = source.into();
        self
    }

    /// Meant for the program `destination`.
    #[must_use]
    pub fn with_destination(mut self, destination: impl Into<Arc<str>>) -> Self {
        self.destination = Some(destination.into());
        self
    }

    /// To be answered under `topic`.
    #[must_use]
    pub fn with_reply_to(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.reply_to = Some(topic.into());
        self
    }

    /// Belonging to the request `id`.
    #[must_use]
    pub fn with_correlation_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// With a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// With those fields of `cx` that cross a bus: principal, remaining time, trace.
    #[must_use]
    pub fn with_context(mut self, cx: &CallContext) -> Self {
        headers::inject(cx, &mut self.headers);
        self
    }

    /// As the answer to `request`: with its correlation id (its own id when it has none), for its sender.
    #[must_use]
    pub fn in_reply_to(mut self, request: &Self) -> Self {
        let correlation = request.correlation_id.clone();
        self.correlation_id = Some(correlation.unwrap_or_else(|| request.message_id.as_str().into()));
        self.destination = (!request.source.is_empty()).then(|| Arc::clone(&request.source));
        self
    }

    /// How large the message is: the bytes of its body and of its headers.
    pub fn size(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        self.body.len() + headers.sum::<usize>()
    }
}

/// A body that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The message is of another type.
    #[error("a message of type `{found}` came where `{expected}` was expected")]
    WrongType {
        /// The type that was asked for.
        expected: &'static str,
        /// The type on the envelope.
        found: String,
    },
    /// The body does not fit its type.
    #[error(
        "the body of a `{message_type}` message cannot be read: {}",
        describe_json_error(source)
    )]
    Malformed {
        /// The type on the envelope.
        message_type: &'static str,
        /// What is wrong, and where; it may quote the body.
        source: serde_json::Error,
    },
    /// The payload cannot be written as JSON.
    #[error("a `{message_type}` message cannot be written as JSON: {source}")]
    Unwritable {
        /// The type of the payload.
        message_type: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Ping {
        n: u8,
    }

    impl Message for Ping {
        const TYPE: &'static str = "test.Ping";
    }

    fn ping() -> MessageEnvelope {
        let envelope = MessageEnvelope::of(&Ping { n: 7 }).unwrap();
        envelope
            .with_id("m1")
            .with_timestamp(Timestamp::from_millis(1_709_209_845_123))
    }

    #[test]
    fn on_the_wire() {
        let envelope = ping()
            .with_source("cli")
            .with_reply_to("user.response")
            .with_correlation_id("c1")
            .with_header("rb-tool-provider", "mcp");
        let json = concat!(
            r#"{"messageId":"m1","messageType":"test.Ping","source":"cli","body":"eyJuIjo3fQ==","#,
            r#""timestamp":"2024-02-29T12:30:45.123Z","correlationId":"c1","replyTo":"user.response","#,
            r#""headers":{"rb-tool-provider":"mcp"}}"#,
        );
        assert_eq!(serde_json::to_string(&envelope).unwrap(), json);
        assert_eq!(serde_json::from_str::<MessageEnvelope>(json).unwrap(), envelope);
    }

    #[test]
    fn unknown_members_are_ignored_and_missing_ones_are_errors() {
        let json = r#"{"messageId":"m1","messageType":"t","body":"","timestamp":"1970-01-01T00:00:00Z","new":1}"#;
        let expected = MessageEnvelope::new("t", "")
            .with_id("m1")
            .with_timestamp(Timestamp::default());
        assert_eq!(serde_json::from_str::<MessageEnvelope>(json).unwrap(), expected);
        let json = json.replace("messageId", "id");
        assert!(serde_json::from_str::<MessageEnvelope>(&json).is_err());
    }

    #[test]
    fn a_payload_of_another_type_or_shape_is_a_typed_error() {
        assert_eq!(ping().payload::<Ping>().unwrap(), Ping { n: 7 });
        let other = MessageEnvelope::new("test.Pong", r#"{"n":7}"#);
        assert!(matches!(other.payload::<Ping>(), Err(PayloadError::WrongType { found, .. }) if found == "test.Pong"));
        let broken = MessageEnvelope::new(Ping::TYPE, r#"{"n":"#);
        assert!(matches!(broken.payload::<Ping>(), Err(PayloadError::Malformed { .. })));
    }

    #[test]
    fn an_answer_finds_its_question() {
        let answer = |question: &MessageEnvelope| {
            let answer = ping().in_reply_to(question);
            (answer.correlation_id.unwrap().to_string(), answer.destination)
        };
        assert_eq!(answer(&ping()), ("m1".to_owned(), None));
        let question = ping().with_correlation_id("c1").with_source("cli");
        assert_eq!(answer(&question), ("c1".to_owned(), Some("cli".into())));
    }
}
