//! Envelopes as AMQP messages, in the original's properties and headers.
//!
//! The original writes the message id, type, correlation id and reply topic as properties, a missing one as an empty
//! text, the timestamp in whole seconds, and source, destination and each header as `rb-` and its name. It ignores
//! headers without that prefix; what it cannot express travels in those, under `x-rockbot-`.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use rockbot_core::Timestamp;
use rockbot_core::messaging::{BusError, MessageEnvelope};

/// Maximum length of a short text of the protocol, in bytes.
const MAX_SHORT: usize = 255;
/// Maximum size of all headers together, in bytes. They must fit into one frame, which is 128 KiB by default.
const MAX_HEADERS: usize = 64 * 1024;
/// The delivery mode of messages that survive a restart of the broker.
const PERSISTENT: u8 = 2;

/// The milliseconds of a timestamp that whole seconds cannot express.
const TIMESTAMP: &str = "x-rockbot-timestamp";
/// The prefix of a header whose name is that of a field.
const SHADOWED: &str = "x-rockbot-header-";
/// The topic of a message that reached a queue on another way than by its topic.
pub(super) const TOPIC: &str = "x-rockbot-topic";
/// The number of deliveries so far.
pub(super) const ATTEMPTS: &str = "x-rockbot-attempts";

/// Returns the properties of a message.
pub(super) fn properties(envelope: &MessageEnvelope, durable: bool) -> Result<BasicProperties, BusError> {
    let correlation = envelope.correlation_id.as_deref().unwrap_or_default();
    let reply_to = envelope.reply_to.as_deref().unwrap_or_default();
    let millis = envelope.timestamp.as_millis();
    let properties = BasicProperties::default()
        .with_message_id(short("id", envelope.message_id.as_str())?)
        .with_type(short("type", &envelope.message_type)?)
        .with_correlation_id(short("correlation id", correlation)?)
        .with_reply_to(short("reply topic", reply_to)?)
        .with_timestamp(millis / 1000)
        .with_content_type("application/json".into())
        .with_headers(headers(envelope)?);
    Ok(match durable {
        true => properties.with_delivery_mode(PERSISTENT),
        false => properties,
    })
}

/// Returns the envelope of a message that arrived.
pub(super) fn envelope(properties: &BasicProperties, body: Vec<u8>) -> MessageEnvelope {
    let text = |property: &Option<ShortString>| property.as_ref().map(|text| text.as_str().to_owned());
    let filled = |property| text(property).filter(|text| !text.is_empty());
    let message_type = filled(properties.kind()).unwrap_or_else(|| "unknown".to_owned());
    let mut envelope = MessageEnvelope::new(message_type, Bytes::from(body));
    if let Some(id) = filled(properties.message_id()) {
        envelope = envelope.with_id(id);
    }
    envelope.correlation_id = filled(properties.correlation_id()).map(Into::into);
    envelope.reply_to = filled(properties.reply_to()).map(Into::into);
    if let Some(seconds) = properties.timestamp() {
        envelope.timestamp = Timestamp::from_millis(seconds.saturating_mul(1000));
    }
    let headers = properties.headers().iter().flat_map(|table| table.inner());
    for (name, value) in headers {
        read_header(&mut envelope, name.as_str(), value);
    }
    envelope
}

/// Returns a header of a message as text.
pub(super) fn header_text(properties: &BasicProperties, name: &str) -> Option<String> {
    header(properties, name).and_then(as_text)
}

/// Returns a header of a message as a number.
pub(super) fn header_number(properties: &BasicProperties, name: &str) -> Option<i64> {
    header(properties, name).and_then(as_number)
}

/// Returns a header of a message.
pub(super) fn header<'a>(properties: &'a BasicProperties, name: &str) -> Option<&'a AMQPValue> {
    properties.headers().as_ref()?.inner().get(name)
}

/// Returns the properties of a message for another way through the broker: with these headers, and without the trace
/// of its former ways, from which the broker would conclude that the message goes in circles.
pub(super) fn readdressed(properties: &BasicProperties, added: Vec<(&str, AMQPValue)>) -> BasicProperties {
    let mut headers = FieldTable::default();
    let kept = properties.headers().iter().flat_map(|table| table.inner());
    for (name, value) in kept {
        let is_trace = ["x-death", "x-first-death-", "x-last-death-", "x-delivery-count"]
            .iter()
            .any(|trace| name.as_str().starts_with(trace));
        if !is_trace {
            headers.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in added {
        headers.insert(name.into(), value);
    }
    properties.clone().with_headers(headers)
}

/// Returns a number as the protocol's widest one that all brokers take.
pub(super) fn number(number: u64) -> AMQPValue {
    AMQPValue::LongLongInt(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Returns a value as text, if it is one.
pub(super) fn as_text(value: &AMQPValue) -> Option<String> {
    let bytes = match value {
        AMQPValue::LongString(text) => text.as_bytes(),
        AMQPValue::ShortString(text) => text.as_str().as_bytes(),
        AMQPValue::ByteArray(bytes) => bytes.as_slice(),
        _ => return None,
    };
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// Returns a value as a number, if it is one.
pub(super) fn as_number(value: &AMQPValue) -> Option<i64> {
    match value {
        AMQPValue::ShortShortInt(number) => Some((*number).into()),
        AMQPValue::ShortInt(number) => Some((*number).into()),
        AMQPValue::LongInt(number) => Some((*number).into()),
        AMQPValue::LongUInt(number) => Some((*number).into()),
        AMQPValue::LongLongInt(number) => Some(*number),
        AMQPValue::Timestamp(seconds) => i64::try_from(*seconds).ok(),
        _ => None,
    }
}

fn headers(envelope: &MessageEnvelope) -> Result<FieldTable, BusError> {
    let size: usize = envelope
        .headers
        .iter()
        .map(|(name, text)| name.len() + text.len())
        .sum();
    if size > MAX_HEADERS {
        return Err(too_long("headers", size, MAX_HEADERS));
    }
    let mut table = FieldTable::default();
    let text = |text: &str| AMQPValue::LongString(text.into());
    table.insert("rb-source".into(), text(&envelope.source));
    if let Some(destination) = &envelope.destination {
        table.insert("rb-destination".into(), text(destination));
    }
    for (name, value) in &envelope.headers {
        let prefix = if is_field(name) { SHADOWED } else { "rb-" };
        table.insert(short("name of a header", &format!("{prefix}{name}"))?, text(value));
    }
    let millis = envelope.timestamp.as_millis();
    if !millis.is_multiple_of(1000) {
        table.insert(TIMESTAMP.into(), number(millis));
    }
    Ok(table)
}

fn read_header(envelope: &mut MessageEnvelope, name: &str, value: &AMQPValue) {
    if name == TIMESTAMP {
        if let Some(millis) = as_number(value).and_then(|millis| u64::try_from(millis).ok()) {
            envelope.timestamp = Timestamp::from_millis(millis);
        }
        return;
    }
    let Some(text) = as_text(value) else { return };
    match (name.strip_prefix("rb-"), name.strip_prefix(SHADOWED)) {
        (Some("source"), _) => envelope.source = text.into(),
        (Some("destination"), _) => envelope.destination = Some(text).filter(|to| !to.is_empty()).map(Into::into),
        (Some(name), _) => drop(envelope.headers.insert(name.to_owned(), text)),
        (None, Some(name)) if is_field(name) => drop(envelope.headers.insert(name.to_owned(), text)),
        _ => {}
    }
}

/// Returns `true` if the original takes a header of this name for a field of the envelope.
fn is_field(name: &str) -> bool {
    matches!(name, "source" | "destination")
}

/// Returns the name of a header as the protocol has it.
pub(super) fn header_name(name: &str) -> Result<ShortString, BusError> {
    short("name of a header", name)
}

fn short(property: &str, text: &str) -> Result<ShortString, BusError> {
    ShortString::try_new(text).map_err(|_| too_long(property, text.len(), MAX_SHORT))
}

fn too_long(property: &str, size: usize, limit: usize) -> BusError {
    BusError::PropertyTooLong {
        property: property.to_owned(),
        size,
        limit,
    }
}
