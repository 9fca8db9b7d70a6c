//! Envelopes as AMQP messages, in the original's properties and headers.
//!
//! The original writes the message id, type, correlation id and reply topic as properties, a
//! missing one as an empty text, the timestamp in whole seconds, and source, destination and each
//! header as `rb-` and its name. It ignores headers without that prefix; values that it cannot
//! express travel in such headers, under `x-rockbot-`.

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use rockbot_core::Timestamp;
use rockbot_core::messaging::{BusError, MessageEnvelope};

/// Maximum length of a short text of the protocol, in bytes.
const MAX_SHORT: usize = 255;
/// Maximum size of all headers together, in bytes. They must fit into one frame, which is 128 KiB
/// by default.
pub(super) const MAX_HEADERS: usize = 64 * 1024;
/// The delivery mode of messages that survive a restart of the broker.
const PERSISTENT: u8 = 2;

/// The milliseconds of a timestamp that whole seconds cannot express.
const TIMESTAMP: &str = "x-rockbot-timestamp";
/// The prefix of a header with the name of a field.
const SHADOWED: &str = "x-rockbot-header-";
/// The topic of a message that reached a queue on another way than by its topic.
pub(super) const TOPIC: &str = "x-rockbot-topic";
/// The number of deliveries so far.
pub(super) const ATTEMPTS: &str = "x-rockbot-attempts";
/// The number of headers that a moved message has lost, since they do not fit into one frame.
const OMITTED: &str = "x-rockbot-omitted";
/// `true` on each copy of a message but the first, whose confirm was lost.
const RESENT: &str = "x-rockbot-resent";

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
    Ok(if durable {
        properties.with_delivery_mode(PERSISTENT)
    } else {
        properties
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

/// Returns the properties of a further copy of a message.
pub(super) fn resent(properties: &BasicProperties) -> BasicProperties {
    let mut headers = properties.headers().clone().unwrap_or_default();
    headers.insert(RESENT.into(), AMQPValue::Boolean(true));
    properties.clone().with_headers(headers)
}

/// Returns `true` if another copy of a message was published before this one.
pub(super) fn is_resent(properties: &BasicProperties) -> bool {
    header(properties, RESENT) == Some(&AMQPValue::Boolean(true))
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

/// A setter of a property.
type WithText = fn(BasicProperties, ShortString) -> BasicProperties;

/// The headers that a message takes along on another way through the broker: as many as fit, the
/// headers of its envelope first.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptHeaders {
    /// `true` to keep headers that are not of the envelope, too. The broker may refuse a message for
    /// such a header.
    has_foreign: bool,
    /// Maximum size of the frame of the headers, in bytes.
    pub(super) max_frame: usize,
}

impl KeptHeaders {
    /// All of the message, for the frames of any broker that took it.
    pub(super) const ALL: Self = Self {
        has_foreign: true,
        max_frame: usize::MAX,
    };

    /// Leaves out the headers that are not of the envelope.
    pub(super) fn own(self) -> Self {
        Self {
            has_foreign: false,
            ..self
        }
    }

    /// Sets the maximum size of the frame, in bytes.
    pub(super) fn within(self, max_frame: usize) -> Self {
        Self { max_frame, ..self }
    }
}

/// Returns the properties of a message for another way through the broker: the properties of its
/// envelope, and these headers. A header of its own holds the number of headers that have no
/// room.
///
/// A property that is not listed here could act on that way. The broker refuses a message with
/// the user of another connection, drops a message that has expired, and sends copies to the
/// recipients in the headers `CC` and `BCC`.
pub(super) fn readdressed(
    properties: &BasicProperties,
    added: Vec<(&str, AMQPValue)>,
    kept: KeptHeaders,
) -> BasicProperties {
    let mut moved = BasicProperties::default();
    let texts: [(_, WithText); 7] = [
        (properties.message_id(), BasicProperties::with_message_id),
        (properties.kind(), BasicProperties::with_type),
        (properties.correlation_id(), BasicProperties::with_correlation_id),
        (properties.reply_to(), BasicProperties::with_reply_to),
        (properties.content_type(), BasicProperties::with_content_type),
        (properties.content_encoding(), BasicProperties::with_content_encoding),
        (properties.app_id(), BasicProperties::with_app_id),
    ];
    for (text, with) in texts {
        if let Some(text) = text {
            moved = with(moved, text.clone());
        }
    }
    if let Some(seconds) = *properties.timestamp() {
        moved = moved.with_timestamp(seconds);
    }
    if *properties.delivery_mode() == Some(PERSISTENT) {
        moved = moved.with_delivery_mode(PERSISTENT);
    }
    let mut headers = FieldTable::default();
    for (name, value) in added {
        headers.insert(name.into(), value);
    }
    let moved = moved.with_headers(headers.clone());
    keep_headers(&mut headers, properties, kept, frame_size(&moved));
    moved.with_headers(headers)
}

/// Returns the number of headers that a moved message has lost.
pub(super) fn omitted_headers(properties: &BasicProperties) -> u32 {
    let omitted = header_number(properties, OMITTED).and_then(|omitted| u32::try_from(omitted).ok());
    omitted.unwrap_or_default()
}

/// Returns `true` if the headers of a message are too large to take along on another way through
/// the broker.
pub(super) fn has_large_headers(properties: &BasicProperties) -> bool {
    movable_headers(properties)
        .map(|(name, value)| header_size(name, value))
        .sum::<usize>()
        > MAX_HEADERS
}

/// Adds the headers of a message to `headers`, whose frame has `size` bytes.
fn keep_headers(headers: &mut FieldTable, properties: &BasicProperties, kept: KeptHeaders, size: usize) {
    let is_own = |name: &str| name.starts_with("rb-") || name.starts_with("x-rockbot-");
    let added = headers.clone();
    let former = || movable_headers(properties).filter(|(name, _)| !added.contains_key(name));
    let own = former().filter(|(name, _)| is_own(name));
    let foreign = former().filter(|(name, _)| !is_own(name));
    let note = number(0);
    let mut omitted = 0;
    let room = kept.max_frame.saturating_sub(size + header_size(OMITTED, &note));
    let mut room = room.min(MAX_HEADERS);
    for (name, value) in own.chain(foreign) {
        match room.checked_sub(header_size(name, value)) {
            Some(left) if kept.has_foreign || is_own(name) => {
                headers.insert(name.into(), value.clone());
                room = left;
            }
            _ => omitted += 1,
        }
    }
    if omitted > 0 {
        headers.insert(OMITTED.into(), number(omitted));
    }
}

/// Returns the headers that do not act on the way of a message. The trace of its former ways
/// would make the broker conclude that it goes in circles, so it is left out, and so are further
/// recipients.
fn movable_headers(properties: &BasicProperties) -> impl Iterator<Item = (&str, &AMQPValue)> {
    let is_trace = |name: &str| {
        ["x-death", "x-first-death-", "x-last-death-", "x-delivery-count"]
            .iter()
            .any(|trace| name.starts_with(trace))
    };
    let headers = properties.headers().iter().flat_map(|table| table.inner());
    headers
        .map(|(name, value)| (name.as_str(), value))
        .filter(move |(name, _)| !is_trace(name) && !matches!(*name, "CC" | "BCC" | OMITTED))
        // No bus reads a nested value, and its size is not known without writing it.
        .filter(|(_, value)| !matches!(value, AMQPValue::FieldArray(_) | AMQPValue::FieldTable(_)))
}

/// Returns the size of the frame of a message's properties, in bytes, rounded up. Nested headers,
/// which no bus sends, do not count.
pub(super) fn frame_size(properties: &BasicProperties) -> usize {
    // The frame itself, the fixed fields, and the mark of a further copy.
    const AROUND: usize = 64;
    let texts = [
        properties.message_id(),
        properties.kind(),
        properties.correlation_id(),
        properties.reply_to(),
        properties.content_type(),
        properties.content_encoding(),
        properties.app_id(),
        properties.expiration(),
    ];
    let texts = texts.into_iter().flatten().map(|text| 1 + text.as_str().len());
    let headers = properties.headers().iter().flat_map(|table| table.inner());
    let headers = headers.map(|(name, value)| header_size(name.as_str(), value));
    AROUND + texts.chain(headers).sum::<usize>()
}

/// Returns the size of a header in a frame, in bytes.
fn header_size(name: &str, value: &AMQPValue) -> usize {
    // The length of the name, and the kind of the value.
    let around = 2 + name.len();
    around
        + match value {
            AMQPValue::LongString(text) => 4 + text.as_bytes().len(),
            AMQPValue::ByteArray(bytes) => 4 + bytes.as_slice().len(),
            AMQPValue::ShortString(text) => 1 + text.as_str().len(),
            _ => 8,
        }
}

/// Returns a number in the widest integer type of the protocol that all brokers take.
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
    let sizes = table
        .inner()
        .iter()
        .map(|(name, value)| header_size(name.as_str(), value));
    match sizes.sum() {
        0..=MAX_HEADERS => Ok(table),
        size => Err(too_long("headers", size, MAX_HEADERS)),
    }
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
