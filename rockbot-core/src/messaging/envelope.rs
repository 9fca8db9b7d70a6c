//! The envelope of a message: the fields that all messages have in common, whatever their body
//! is.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::json_error::describe_json_error;
use super::{Headers, headers};
use crate::id::random_id;
use crate::support::json;
use crate::{CallContext, Clock as _, MessageId, SystemClock, Timestamp};

/// Initial capacity of the buffer for a body, in bytes. Most bodies fit without reallocating.
const BODY_CAPACITY: usize = 512;

/// A type that is sent as the body of a message.
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
    /// The name of the type on the wire. The receiver finds its handler by this name. It is written
    /// out, never derived from a path in the code, so that programs in other languages and versions
    /// can share a bus.
    const TYPE: &'static str;

    /// The topic of such messages unless the sender chooses another. A host that handles the type
    /// subscribes to it. Default `None`.
    const TOPIC: Option<&'static str> = None;
}

/// A message: a body, and its metadata.
///
/// A broker carries the body as it is and the metadata as properties. As JSON its members are
/// camelCase, the body is base64 and the timestamp RFC 3339.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MessageEnvelope {
    /// The id of the message, chosen by its sender. The same id again is the same message, redelivered.
    pub message_id: MessageId,
    /// The type of the body: [`Message::TYPE`].
    pub message_type: Cow<'static, str>,
    /// The sending program, or an empty text if it is unknown.
    #[serde(default)]
    pub source: Arc<str>,
    /// The body: JSON text, unless sender and receiver agree otherwise.
    #[serde(with = "super::base64")]
    pub body: Bytes,
    /// The time when the message was created.
    #[serde(with = "crate::rfc3339")]
    pub timestamp: Timestamp,
    /// The id of the request that this message belongs to. A reply carries the id of its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Arc<str>>,
    /// The topic that the sender expects the reply under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Arc<str>>,
    /// The program that the message is meant for. Buses route by topic and ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Arc<str>>,
    /// Further metadata: see [`headers`].
    #[serde(default)]
    pub headers: Headers,
}

/// Shows neither the body nor the values of headers: brokers and layers carry tokens in them.
impl fmt::Debug for MessageEnvelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageEnvelope")
            .field("message_id", &self.message_id)
            .field("message_type", &self.message_type)
            .field("source", &self.source)
            .field("body_bytes", &self.body.len())
            .field("timestamp", &self.timestamp)
            .field("correlation_id", &self.correlation_id)
            .field("reply_to", &self.reply_to)
            .field("destination", &self.destination)
            .field("headers", &self.headers.keys())
            .finish()
    }
}

impl MessageEnvelope {
    /// Creates a message with a fresh random id and the current time.
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

    /// Creates a message with `payload` as its body, serialized as JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the payload cannot be serialized.
    pub fn of<M: Message + Serialize>(payload: &M) -> Result<Self, PayloadError> {
        let mut body = Vec::with_capacity(BODY_CAPACITY);
        json::write(&mut body, payload).map_err(|cause| PayloadError::Unwritable {
            message_type: M::TYPE,
            cause,
        })?;
        Ok(Self::new(M::TYPE, body))
    }

    /// Parses the body as an `M`. Members are found in any case, as the original RockBot finds
    /// them.
    ///
    /// # Errors
    ///
    /// Returns an error if the message is of another type, or the body does not match the type.
    /// Delivering the message again does not help.
    pub fn payload<M: Message + DeserializeOwned>(&self) -> Result<M, PayloadError> {
        if self.message_type != M::TYPE {
            return Err(PayloadError::WrongType {
                expected: M::TYPE,
                found: self.message_type.to_string(),
            });
        }
        json::read_any_case(&self.body).map_err(|cause| PayloadError::Malformed {
            message_type: M::TYPE,
            cause,
        })
    }

    /// Sets the id, instead of a random one.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.message_id = id.into();
        self
    }

    /// Sets the time of creation.
    #[must_use]
    pub fn with_timestamp(mut self, at: Timestamp) -> Self {
        self.timestamp = at;
        self
    }

    /// Sets the sending program.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Arc<str>>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets the program that the message is meant for.
    #[must_use]
    pub fn with_destination(mut self, destination: impl Into<Arc<str>>) -> Self {
        self.destination = Some(destination.into());
        self
    }

    /// Sets the topic that the sender expects the reply under.
    #[must_use]
    pub fn with_reply_to(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.reply_to = Some(topic.into());
        self
    }

    /// Sets the id of the request that the message belongs to.
    #[must_use]
    pub fn with_correlation_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// Sets a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets the key of the partition that the message belongs to. A subscription that is
    /// partitioned by [`PartitionBy::partition_key`](super::PartitionBy::partition_key) handles
    /// messages with the same key one after the other, in order.
    #[must_use]
    pub fn with_partition_key(self, key: impl Into<String>) -> Self {
        self.with_header(headers::PARTITION_KEY, key)
    }

    /// Sets the headers of the fields of `cx` that cross a bus: principal, remaining time, trace.
    #[must_use]
    pub fn with_context(mut self, cx: &CallContext) -> Self {
        headers::inject(cx, &mut self.headers);
        self
    }

    /// Addresses the message as the reply to `request`: to its sender, with its correlation id, or
    /// its message id if it has no correlation id.
    #[must_use]
    pub fn in_reply_to(mut self, request: &Self) -> Self {
        let correlation = request.correlation_id.clone();
        self.correlation_id = Some(correlation.unwrap_or_else(|| request.message_id.as_str().into()));
        self.destination = (!request.source.is_empty()).then(|| Arc::clone(&request.source));
        self
    }

    /// Returns the size of the message in bytes: its body and its headers.
    pub fn size(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        self.body.len() + headers.sum::<usize>()
    }
}

/// An error of serializing or parsing a body.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The message is of another type.
    #[error("a message of type `{found}` came where `{expected}` was expected")]
    WrongType {
        /// The expected type.
        expected: &'static str,
        /// The type on the envelope.
        found: String,
    },
    /// The body does not match its type.
    #[error(
        "the body of a `{message_type}` message cannot be read: {}",
        describe_json_error(cause)
    )]
    Malformed {
        /// The type on the envelope.
        message_type: &'static str,
        /// The error of the parser. Its message may quote the body.
        cause: serde_json::Error,
    },
    /// The payload cannot be serialized as JSON.
    #[error("a `{message_type}` message cannot be written as JSON: {cause}")]
    Unwritable {
        /// The type of the payload.
        message_type: &'static str,
        /// The error of the serializer.
        cause: serde_json::Error,
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
