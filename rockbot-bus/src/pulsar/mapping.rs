//! Envelopes as messages of Pulsar: headers as properties of their name, the other fields as
//! properties with the prefix `rockbot-`.
//!
//! TrustGraph reads the property `id`, a header here, and ignores the others.

use std::collections::HashMap;

use pulsar::producer::Message;
use pulsar::proto::{MessageIdData, MessageMetadata};
use rockbot_core::messaging::{BusError, Headers, MessageEnvelope};
use rockbot_core::{Clock as _, SystemClock, Timestamp};

/// The prefix of the properties that are no headers.
const OWN: &str = "rockbot-";
const ID: &str = "rockbot-id";
const TYPE: &str = "rockbot-type";
const SOURCE: &str = "rockbot-source";
const DESTINATION: &str = "rockbot-destination";
const CORRELATION: &str = "rockbot-correlation-id";
const REPLY_TO: &str = "rockbot-reply-to";
/// Milliseconds since 1970.
const TIMESTAMP: &str = "rockbot-timestamp";
/// The number of deliveries so far, of a message that was moved to another topic.
pub(super) const ATTEMPTS: &str = "rockbot-attempts";
/// Set on each copy of a message but the first, whose receipt was lost.
const RESENT: &str = "rockbot-resent";
/// The topic and the id of a message that the client moved to the retry topic, since it was
/// delivered before.
const ORIGIN: [&str; 2] = ["REAL_TOPIC", "ORIGIN_MESSAGE_ID"];
/// The time before which a message is not to be handled, in milliseconds since 1970.
pub(super) const DUE: &str = "rockbot-due";

/// A message as it arrived.
pub(super) struct Arrived {
    pub(super) envelope: MessageEnvelope,
    /// The properties that are no headers.
    own: HashMap<String, String>,
}

/// Returns a message of Pulsar.
pub(super) fn message(envelope: &MessageEnvelope) -> Result<Message, BusError> {
    match envelope.headers.keys().find(|name| name.starts_with(OWN)) {
        None => Ok(written(envelope)),
        Some(name) => Err(BusError::Provider {
            context: format!("the header `{name}` has a name that the bus keeps for itself: rename it"),
            source: format!("names with the prefix `{OWN}` are fields of the message").into(),
        }),
    }
}

/// Returns a message that arrived on its way to another topic, with these notes.
pub(super) fn moved(envelope: &MessageEnvelope, notes: &[(&str, String)]) -> Message {
    let mut message = written(envelope);
    let notes = notes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    message.properties.extend(notes);
    message
}

/// Returns a further copy of a message.
pub(super) fn resent(mut message: Message) -> Message {
    message.properties.insert(RESENT.to_owned(), "true".to_owned());
    message
}

fn written(envelope: &MessageEnvelope) -> Message {
    let headers = envelope.headers.iter();
    let mut properties: HashMap<_, _> = headers.map(|(name, value)| (name.clone(), value.clone())).collect();
    let fields = [
        (ID, Some(envelope.message_id.as_str())),
        (TYPE, Some(&*envelope.message_type)),
        (SOURCE, Some(&*envelope.source).filter(|source| !source.is_empty())),
        (DESTINATION, envelope.destination.as_deref()),
        (CORRELATION, envelope.correlation_id.as_deref()),
        (REPLY_TO, envelope.reply_to.as_deref()),
        (TIMESTAMP, Some(&*envelope.timestamp.as_millis().to_string())),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            properties.insert(name.to_owned(), value.to_owned());
        }
    }
    Message {
        payload: envelope.body.to_vec(),
        properties,
        ..Message::default()
    }
}

/// Reads a message. A message without an id of ours, from another program, gets the broker's id,
/// if the broker gives it one.
pub(super) fn read(metadata: &MessageMetadata, body: Vec<u8>, id: Option<&str>) -> Arrived {
    let mut own = HashMap::new();
    let mut headers = Headers::new();
    for property in &metadata.properties {
        if property.key.starts_with(OWN) || ORIGIN.contains(&property.key.as_str()) {
            drop(own.insert(property.key.clone(), property.value.clone()))
        } else {
            drop(headers.insert(property.key.clone(), property.value.clone()))
        }
    }
    let mut field = |name: &str| own.remove(name);
    let message_type = field(TYPE).unwrap_or_else(|| "unknown".to_owned());
    let mut envelope = MessageEnvelope::new(message_type, body);
    if let Some(id) = field(ID).or_else(|| id.map(ToOwned::to_owned)) {
        envelope = envelope.with_id(id);
    }
    let millis = field(TIMESTAMP).and_then(|millis| millis.parse().ok());
    envelope.timestamp = Timestamp::from_millis(millis.unwrap_or(metadata.publish_time));
    envelope.source = field(SOURCE).unwrap_or_default().into();
    envelope.destination = field(DESTINATION).map(Into::into);
    envelope.correlation_id = field(CORRELATION).map(Into::into);
    envelope.reply_to = field(REPLY_TO).map(Into::into);
    envelope.headers = headers;
    Arrived { envelope, own }
}

impl Arrived {
    /// Returns a note on the way of the message.
    pub(super) fn note(&self, name: &str) -> Option<&str> {
        self.own.get(name).map(String::as_str)
    }

    /// Returns `true` if the bus published another copy of the message before this one.
    pub(super) fn is_resent(&self) -> bool {
        self.note(RESENT).is_some()
    }

    /// Returns a note that is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.note(name)?.parse().ok()
    }
}

/// Returns the text of the broker's id of a message. A message of a topic that is not persistent
/// has none of its own.
pub(super) fn broker_id(topic: &str, id: &MessageIdData) -> Option<String> {
    if topic.starts_with("non-persistent://") {
        return None;
    }
    let ledger = id.ledger_id;
    let entry = id.entry_id;
    let partition = id.partition.unwrap_or(-1);
    let index = id.batch_index.map_or_else(String::new, |index| format!(":{index}"));
    Some(format!("{topic} {ledger}:{entry}:{partition}{index}"))
}

/// Returns the id that a message had before the client moved it to the retry topic.
pub(super) fn origin(metadata: &MessageMetadata) -> Option<String> {
    let property = |name: &str| metadata.properties.iter().find(|property| property.key == name);
    let [topic, id] = ORIGIN.map(property);
    Some(format!("{} {}", topic?.value, id?.value))
}

/// Returns the current time in milliseconds since 1970.
pub(super) fn now() -> u64 {
    SystemClock.now().as_millis()
}
