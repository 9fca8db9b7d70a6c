//! Dead letters: messages in dead-letter queues, with reason, attempts and last error in their headers.

use lapin::BasicProperties;
use lapin::message::Delivery as Received;
use lapin::options::{BasicAckOptions, BasicGetOptions, BasicNackOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, message::BasicGetMessage};
use rockbot_core::messaging::{DeadLetter, DeadLetterReason, Delivery};
use rockbot_core::{Clock as _, MessageId, SystemClock, Timestamp};

use super::mapping::{self, ATTEMPTS, TOPIC};
use super::settings::RabbitMqSettings;
use super::topology;
use crate::consumer::{reason_name, reason_named};

/// The subscription that could not handle the message.
const SUBSCRIPTION: &str = "x-rockbot-subscription";
/// The reason, as in [`DeadLetterReason`].
const REASON: &str = "x-rockbot-reason";
/// The error of the last delivery.
const ERROR: &str = "x-rockbot-error";
/// The time when the message became a dead letter, in milliseconds.
const AT: &str = "x-rockbot-dead-since";
/// Maximum length of a recorded error, in bytes: headers share one frame.
const MAX_ERROR: usize = 4096;

/// Returns the headers of a dead letter.
pub(super) fn headers(subscription: &str, reason: DeadLetterReason, why: &str) -> Vec<(&'static str, AMQPValue)> {
    let text = |text: &str| AMQPValue::LongString(text.into());
    vec![
        (SUBSCRIPTION, text(subscription)),
        (REASON, text(reason_name(reason))),
        (ERROR, text(&why[..why.floor_char_boundary(MAX_ERROR)])),
        (AT, mapping::number(SystemClock.now().as_millis())),
    ]
}

/// Returns up to `limit` messages of a dead-letter queue, oldest first, and leaves them there.
pub(super) async fn peek(
    channel: &Channel,
    queue: &str,
    limit: usize,
    settings: &RabbitMqSettings,
) -> lapin::Result<Vec<DeadLetter>> {
    let (mut letters, mut last) = (Vec::new(), None);
    while letters.len() < limit
        && let Some(message) = next(channel, queue).await?
    {
        last = Some(message.delivery.delivery_tag);
        letters.push(read(queue, message.delivery, settings));
    }
    give_back(channel, last).await?;
    Ok(letters)
}

/// Removes and returns the oldest dead letter of a message in a queue.
pub(super) async fn take(
    channel: &Channel,
    queue: &str,
    wanted: &Wanted<'_>,
    settings: &RabbitMqSettings,
) -> lapin::Result<Option<DeadLetter>> {
    let (mut found, mut last) = (None, None);
    while let Some(message) = next(channel, queue).await? {
        let (tag, id) = (
            message.delivery.delivery_tag,
            message.delivery.properties.message_id().clone(),
        );
        if id.is_some_and(|id| id.as_str() == wanted.message.as_str()) {
            let letter = read(queue, message.delivery, settings);
            if *letter.subscription == *wanted.subscription {
                channel.basic_ack(tag, BasicAckOptions::default()).await?;
                found = Some(letter);
                break;
            }
        }
        last = Some(tag);
    }
    give_back(channel, last).await?;
    Ok(found)
}

/// The dead letter to take.
pub(super) struct Wanted<'a> {
    pub(super) subscription: &'a str,
    pub(super) message: &'a MessageId,
}

async fn next(channel: &Channel, queue: &str) -> lapin::Result<Option<BasicGetMessage>> {
    channel.basic_get(queue.into(), BasicGetOptions::default()).await
}

/// Returns all messages up to `last` to the queue, in their places.
async fn give_back(channel: &Channel, last: Option<u64>) -> lapin::Result<()> {
    let Some(last) = last else { return Ok(()) };
    let options = BasicNackOptions {
        multiple: true,
        requeue: true,
    };
    channel.basic_nack(last, options).await
}

/// Reads a dead letter: one of ours by its headers, one of the original or of the broker by the trace that the broker
/// keeps.
fn read(queue: &str, received: Received, settings: &RabbitMqSettings) -> DeadLetter {
    let properties = &received.properties;
    let first_queue = mapping::header_text(properties, "x-first-death-queue");
    let subscription = mapping::header_text(properties, SUBSCRIPTION)
        .or_else(|| first_queue.map(|name| topology::subscription(&name, settings).to_owned()))
        .unwrap_or_else(|| {
            topology::subscription(queue, settings)
                .trim_end_matches(".dlq")
                .to_owned()
        });
    let cause = mapping::header_text(properties, "x-first-death-reason");
    let reason = mapping::header_text(properties, REASON).or_else(|| cause.clone());
    let reason = reason_named(reason.as_deref());
    let last_error = mapping::header_text(properties, ERROR);
    let last_error =
        last_error.unwrap_or_else(|| cause.map_or_else(String::new, |cause| format!("the broker: {cause}")));
    let attempts =
        mapping::header_number(properties, ATTEMPTS).or_else(|| death(properties, "count", mapping::as_number));
    let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok());
    let at = mapping::header_number(properties, AT);
    let at = at.or_else(|| death(properties, "time", mapping::as_number).map(|seconds| seconds.saturating_mul(1000)));
    let at = at.and_then(|at| u64::try_from(at).ok()).unwrap_or_default();
    let topic = mapping::header_text(properties, TOPIC).or_else(|| death(properties, "routing-keys", first_text));
    let topic = topic.unwrap_or_else(|| received.routing_key.as_str().to_owned());
    let envelope = settings.exchange_layout.envelope(properties, received.data);
    let delivery = Delivery::new(topic, envelope).with_attempt(attempts.unwrap_or(1));
    DeadLetter::new(subscription, delivery, reason, Timestamp::from_millis(at)).with_last_error(last_error)
}

/// Returns a field of the broker's latest trace of the message.
fn death<T>(properties: &BasicProperties, field: &str, read: impl Fn(&AMQPValue) -> Option<T>) -> Option<T> {
    let AMQPValue::FieldArray(deaths) = mapping::header(properties, "x-death")? else {
        return None;
    };
    let AMQPValue::FieldTable(latest) = deaths.as_slice().first()? else {
        return None;
    };
    field_of(latest, field).and_then(read)
}

fn field_of<'a>(table: &'a FieldTable, name: &str) -> Option<&'a AMQPValue> {
    table.inner().get(name)
}

fn first_text(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::FieldArray(values) => values.as_slice().first().and_then(mapping::as_text),
        _ => None,
    }
}
