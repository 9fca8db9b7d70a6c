//! Dead letters: messages in dead-letter queues, with reason, attempts and last error in their
//! headers.

use lapin::BasicProperties;
use lapin::message::Delivery as Received;
use lapin::options::{BasicAckOptions, BasicGetOptions, BasicNackOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, message::BasicGetMessage};
use rockbot_core::messaging::{DeadLetter, DeadLetterReason, Delivery};
use rockbot_core::{Clock as _, MessageId, SystemClock, Timestamp};
use tokio::time::{self, Instant};

use super::error::is_missing;
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
/// Maximum length of a recorded error, in bytes.
const MAX_ERROR: usize = 4096;
/// The part of a small frame that a recorded error may fill: the other properties of a message
/// need up to half of the smallest.
const ERROR_PART: usize = 8;

/// Returns the headers of a dead letter, which share a frame of at most `max_frame` bytes with
/// the headers of the message.
pub(super) fn headers(
    subscription: &str,
    reason: DeadLetterReason,
    why: &str,
    max_frame: usize,
) -> Vec<(&'static str, AMQPValue)> {
    let text = |text: &str| AMQPValue::LongString(text.into());
    let max_error = MAX_ERROR.min(max_frame / ERROR_PART);
    vec![
        (SUBSCRIPTION, text(subscription)),
        (REASON, text(reason_name(reason))),
        (ERROR, text(&why[..why.floor_char_boundary(max_error)])),
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
    let mut letters = Vec::new();
    let mut last = None;
    while letters.len() < limit
        && let Some(message) = next(channel, queue).await?
    {
        last = Some(message.delivery.delivery_tag);
        letters.push(read(queue, message.delivery, settings));
    }
    give_back(channel, last).await?;
    Ok(letters)
}

/// Returns the oldest dead letter of a message in a queue, which stays there until it is taken.
pub(super) async fn find(
    channel: Channel,
    queue: &str,
    wanted: &Wanted<'_>,
    settings: &RabbitMqSettings,
) -> lapin::Result<Option<FoundLetter>> {
    let mut before = None;
    while let Some(message) = next(&channel, queue).await? {
        let tag = message.delivery.delivery_tag;
        let id = message.delivery.properties.message_id().as_ref();
        if id.is_some_and(|id| id.as_str() == wanted.message.as_str()) {
            let letter = read(queue, message.delivery, settings);
            if *letter.subscription == *wanted.subscription {
                return Ok(Some(FoundLetter {
                    channel,
                    tag,
                    before,
                    letter,
                }));
            }
        }
        before = Some(tag);
    }
    give_back(&channel, before).await?;
    Ok(None)
}

/// The dead letter to take.
pub(super) struct Wanted<'a> {
    pub(super) subscription: &'a str,
    pub(super) message: &'a MessageId,
}

/// A dead letter that was found, and is hidden from other consumers. It goes back to its queue
/// with its channel.
pub(super) struct FoundLetter {
    channel: Channel,
    tag: u64,
    /// The last of the letters before it, which are hidden, too.
    before: Option<u64>,
    letter: DeadLetter,
}

impl FoundLetter {
    /// Removes the letter from its queue, and returns it. Without the broker's answer until
    /// `deadline` it is not known whether the queue still has it, and another try might find nothing
    /// to return.
    pub(super) async fn take(self, deadline: Instant) -> DeadLetter {
        let removing = async {
            self.channel.basic_ack(self.tag, BasicAckOptions::default()).await?;
            give_back(&self.channel, self.before).await
        };
        let removed = time::timeout_at(deadline, removing).await;
        if !matches!(removed, Ok(Ok(()))) {
            let subscription = &self.letter.subscription;
            tracing::warn!(%subscription, ?removed, "a dead letter was taken that may still be in its queue");
        }
        self.letter
    }
}

/// Takes the next message of a queue, if it has one. A queue that does not exist has none.
async fn next(channel: &Channel, queue: &str) -> lapin::Result<Option<BasicGetMessage>> {
    match channel.basic_get(queue.into(), BasicGetOptions::default()).await {
        Err(error) if is_missing(&error) => Ok(None),
        got => got,
    }
}

/// Returns all messages up to `last` to the queue, in their places, and waits until the broker
/// has done so.
async fn give_back(channel: &Channel, last: Option<u64>) -> lapin::Result<()> {
    if let Some(last) = last {
        let options = BasicNackOptions {
            multiple: true,
            requeue: true,
        };
        channel.basic_nack(last, options).await?;
    }
    match channel.close(200, "done".into()).await {
        // The broker has closed the channel already, since there is no such queue.
        Err(_) if last.is_none() => Ok(()),
        closed => closed,
    }
}

/// Reads a dead letter: a letter of ours by its headers, a letter of the original or of the
/// broker by the trace that the broker keeps.
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
    DeadLetter::new(subscription, delivery, reason, Timestamp::from_millis(at))
        .with_last_error(last_error)
        .with_omitted_headers(mapping::omitted_headers(properties))
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
