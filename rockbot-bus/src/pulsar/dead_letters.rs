//! Dead letters: messages in dead-letter topics, with reason, attempts and last error in their
//! properties.
//!
//! A subscription of its own keeps them there. Dead letters are read without acknowledging them,
//! so that the broker hands them out again to the next reader.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use pulsar::consumer::{InitialPosition, Message};
use pulsar::{ConsumerOptions, SubType};
use rockbot_core::messaging::{BusError, DeadLetter, DeadLetterReason, Delivery};
use rockbot_core::{MessageId, Timestamp};
use tokio::time::{self, Instant};

use super::error::provider;
use super::link::{Link, OPERATION_TIME, OpenConsumer};
use super::mapping::{self, ATTEMPTS};
use super::settings::PulsarSettings;
use super::topics;
use crate::consumer::{SubscriptionSpec, reason_name, reason_named};

/// The subscription that keeps dead letters.
const KEEPER: &str = "rockbot-dead-letters";
/// The subscription that could not handle the message.
const SUBSCRIPTION: &str = "rockbot-subscription";
/// The topic that it was published under.
const TOPIC: &str = "rockbot-topic";
/// The reason, as in [`DeadLetterReason`].
const REASON: &str = "rockbot-reason";
/// The error of the last delivery.
const ERROR: &str = "rockbot-error";
/// The time when the message became a dead letter, in milliseconds since 1970.
const AT: &str = "rockbot-dead-since";
/// Maximum length of a recorded error, in bytes.
const MAX_ERROR: usize = 4096;
/// Time without a message after which a topic counts as read to its end.
const QUIET: Duration = Duration::from_millis(300);
/// Maximum number of dead letters that are looked through, so that a long topic does not fill the
/// memory.
const MAX_READ: usize = 10_000;

/// Returns the topic of the dead letters of a subscription.
pub(super) fn topic(spec: &SubscriptionSpec, settings: &PulsarSettings) -> Result<String, BusError> {
    if spec.options.ephemeral {
        return Ok(ephemeral_topic(settings));
    }
    let topic = spec.pattern.as_str();
    let subscription = settings.subscription(topic, &spec.name);
    Ok(topics::beside(&settings.pulsar_topic(topic)?, subscription, "DLQ"))
}

/// Returns the topic of the dead letters that ephemeral subscriptions share.
pub(super) fn ephemeral_topic(settings: &PulsarSettings) -> String {
    settings.own_topic("rockbot-ephemeral-DLQ")
}

/// Returns the notes of a dead letter.
pub(super) fn notes(
    spec: &SubscriptionSpec,
    attempts: u32,
    reason: DeadLetterReason,
    why: &str,
) -> [(&'static str, String); 6] {
    [
        (SUBSCRIPTION, spec.name.clone()),
        (TOPIC, spec.pattern.as_str().to_owned()),
        (ATTEMPTS, attempts.to_string()),
        (REASON, reason_name(reason).to_owned()),
        (ERROR, why[..why.floor_char_boundary(MAX_ERROR)].to_owned()),
        (AT, mapping::now().to_string()),
    ]
}

/// Subscribes to a topic, so that the broker keeps its messages, and returns the topic.
pub(super) async fn keep(link: &Arc<Link>, topic: String) -> Result<String, BusError> {
    let mut consumer = open(link, &topic).await?;
    let _ = time::timeout(OPERATION_TIME, Box::pin(consumer.close())).await;
    Ok(topic)
}

/// Returns up to `limit` messages of a dead-letter topic, and leaves them there.
pub(super) async fn peek(link: &Arc<Link>, topic: &str, limit: usize) -> Result<Vec<DeadLetter>, BusError> {
    let mut consumer = open(link, topic).await?;
    let mut letters = Vec::new();
    while letters.len() < limit.min(MAX_READ)
        && let Ok(Some(Ok(message))) = time::timeout(QUIET, consumer.next()).await
    {
        letters.push(read(message));
    }
    let _ = time::timeout(OPERATION_TIME, Box::pin(consumer.close())).await;
    Ok(letters)
}

/// Removes and returns the oldest dead letter of a message in a topic.
pub(super) async fn take(
    link: &Arc<Link>,
    topic: &str,
    subscription: &str,
    wanted: &MessageId,
) -> Result<Option<DeadLetter>, BusError> {
    let mut consumer = open(link, topic).await?;
    let mut found = None;
    let mut seen = 0;
    while found.is_none()
        && seen < MAX_READ
        && let Ok(Some(Ok(message))) = time::timeout(QUIET, consumer.next()).await
    {
        seen += 1;
        let topic = message.topic.clone();
        let id = message.message_id().clone();
        let letter = read(message);
        if *letter.subscription == *subscription && letter.envelope.message_id == *wanted {
            // The consumer that is closed below sends it first.
            let taken = consumer.ack_with_id(&topic, id).await;
            taken.map_err(|error| provider("cannot take a dead letter on", &link.settings, error))?;
            found = Some(letter);
        }
    }
    let _ = time::timeout(OPERATION_TIME, Box::pin(consumer.close())).await;
    Ok(found)
}

async fn open(link: &Arc<Link>, topic: &str) -> Result<OpenConsumer, BusError> {
    let settings = &link.settings;
    let doing = "cannot read dead letters on";
    let session = link.session(Instant::now() + OPERATION_TIME).await?;
    let options = ConsumerOptions::default().with_initial_position(InitialPosition::Earliest);
    let building = session
        .client
        .consumer()
        .with_topic(topic)
        .with_subscription(KEEPER)
        .with_subscription_type(SubType::Shared)
        .with_options(options)
        .build();
    match time::timeout(OPERATION_TIME, Box::pin(building)).await {
        Ok(built) => built.map_err(|error| provider(doing, settings, error)),
        Err(elapsed) => {
            session.give_up(&elapsed);
            Err(provider(doing, settings, elapsed))
        }
    }
}

fn read(message: Message<Vec<u8>>) -> DeadLetter {
    let id = mapping::broker_id(&message.topic, message.message_id());
    let arrived = mapping::read(&message.payload.metadata, message.payload.data, id.as_deref());
    let text = |name| arrived.note(name).unwrap_or_default().to_owned();
    let attempts = arrived
        .number(ATTEMPTS)
        .and_then(|attempts| u32::try_from(attempts).ok());
    let at = Timestamp::from_millis(arrived.number(AT).unwrap_or_default());
    let reason = reason_named(arrived.note(REASON));
    let subscription = text(SUBSCRIPTION);
    let topic = text(TOPIC);
    let error = text(ERROR);
    let delivery = Delivery::new(topic, arrived.envelope).with_attempt(attempts.unwrap_or(1));
    DeadLetter::new(subscription, delivery, reason, at).with_last_error(error)
}
