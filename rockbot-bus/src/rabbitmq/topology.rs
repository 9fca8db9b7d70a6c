//! Exchanges and queues, under the original's names and with its arguments.
//!
//! | name | kind | purpose |
//! |---|---|---|
//! | `rockbot`, `rockbot.dlx` | topic exchanges | messages by topic; dead letters by the topic of their subscription |
//! | `rockbot.NAME` | queue | the messages of subscription NAME, bound to its pattern |
//! | `rockbot.NAME.dlq` | queue | its dead letters |
//! | `rockbot.NAME.pN` | queue | partition N of a subscription with a partition rule |
//! | `EXCHANGE-retry` | headers exchange | messages that wait for another attempt |
//! | `EXCHANGE-retry.MS` | queue | those that wait up to MS milliseconds, for all subscriptions |
//! | `EXCHANGE-ephemeral.dlq` | queue | the dead letters of ephemeral subscriptions, the latest 1000 |
//!
//! The last four are not the original's, which does not see them.
//!
//! Retries wait in queues of the broker, one queue for each power of two of milliseconds, for all
//! subscriptions together: at most 26, however many subscriptions and policies there are.

use std::ops::RangeInclusive;
use std::time::Duration;

use lapin::options::{
    ExchangeDeclareOptions, ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::protocol::AMQPSoftError;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, Connection, ExchangeKind};
use rockbot_core::messaging::{BusError, check_topic};

use super::error::refusal;
use super::layout::{self, ExchangeLayout};
use super::mapping::number;
use super::settings::RabbitMqSettings;
use crate::consumer::SubscriptionSpec;

/// Maximum number of deliveries of a message by a quorum queue, before the broker makes it a dead
/// letter.
const QUORUM_DELIVERY_LIMIT: i32 = 20;
/// Maximum number of dead letters of ephemeral subscriptions; beyond it the broker drops the
/// oldest.
const MAX_EPHEMERAL_DEAD_LETTERS: i32 = 1000;
/// The exponents of the delays, in milliseconds, that have a retry queue: 64 ms to 24 days.
pub(super) const RETRY_LEVELS: RangeInclusive<u32> = 6..=31;
/// The header that names a delay; the retry exchange uses it to find the delay's queue.
pub(super) const RETRY_DELAY: &str = "x-rockbot-retry";

impl SubscriptionSpec {
    /// Returns the name of its queue.
    pub(super) fn queue(&self, settings: &RabbitMqSettings) -> String {
        queue(&self.name, settings)
    }

    /// Returns the name of the queue of partition `index`.
    pub(super) fn partition(&self, index: u16, settings: &RabbitMqSettings) -> String {
        format!("{}.p{index}", self.queue(settings))
    }

    /// Returns the name of the queue of its dead letters.
    pub(super) fn dead_letters(&self, settings: &RabbitMqSettings) -> String {
        if self.options.ephemeral {
            ephemeral_dead_letters(settings)
        } else {
            format!("{}.dlq", self.queue(settings))
        }
    }

    /// Checks that the layout of the exchanges can have this subscription.
    pub(super) fn check(&self, settings: &RabbitMqSettings) -> Result<(), BusError> {
        if settings.exchange_layout == ExchangeLayout::Topic {
            return Ok(());
        }
        check_topic(self.pattern.as_str())?;
        if self.is_partitioned() {
            Err(BusError::Provider {
                context: format!(
                    "subscription `{}` has partitions: use the layout of topic exchanges",
                    self.name
                ),
                source: "fanout exchanges have no partitions".into(),
            })
        } else {
            Ok(())
        }
    }
}

/// Returns the name of the queue of subscription `name`.
pub(super) fn queue(name: &str, settings: &RabbitMqSettings) -> String {
    match settings.exchange_layout {
        ExchangeLayout::Topic => format!("{}.{name}", settings.queue_prefix),
        ExchangeLayout::Fanout => name.to_owned(),
    }
}

/// Returns the name of the subscription of a queue.
pub(super) fn subscription<'a>(queue: &'a str, settings: &RabbitMqSettings) -> &'a str {
    if settings.exchange_layout == ExchangeLayout::Fanout {
        return queue;
    }
    let name = queue.strip_prefix(&*settings.queue_prefix);
    name.and_then(|name| name.strip_prefix('.')).unwrap_or(queue)
}

/// Returns the name of the dead-letter queue that ephemeral subscriptions share.
pub(super) fn ephemeral_dead_letters(settings: &RabbitMqSettings) -> String {
    format!("{}-ephemeral.dlq", settings.exchange_name)
}

/// Returns the name of the exchange of messages that wait for another attempt.
pub(super) fn retry_exchange(settings: &RabbitMqSettings) -> String {
    format!("{}-retry", settings.exchange_name)
}

/// Declares the exchanges. A user without the right to declare an exchange uses the exchange that
/// is there.
pub(super) async fn declare_exchanges(connection: &Connection, settings: &RabbitMqSettings) -> lapin::Result<()> {
    let exchanges = [
        (settings.exchange_name.clone(), ExchangeKind::Topic),
        (settings.dead_letter_exchange_name.clone(), ExchangeKind::Topic),
        (retry_exchange(settings), ExchangeKind::Headers),
    ];
    let mut channel = connection.create_channel().await?;
    let mut passive = false;
    for (name, kind) in exchanges {
        let name = ShortString::from(name);
        let declare = async |channel: &Channel, passive| {
            let options = ExchangeDeclareOptions {
                durable: settings.durable,
                passive,
                ..ExchangeDeclareOptions::default()
            };
            let declared = channel.exchange_declare(name.clone(), kind.clone(), options, FieldTable::default());
            declared.await
        };
        match declare(&channel, passive).await {
            Err(error) if !passive && refusal(&error) == Some(AMQPSoftError::ACCESSREFUSED) => {
                passive = true;
                channel = connection.create_channel().await?;
                declare(&channel, passive).await?;
            }
            declared => declared?,
        }
    }
    channel.close(200, "done".into()).await
}

/// Declares and binds the queues of a subscription, and returns the channel. Declaring an
/// existing queue changes nothing; an existing queue with other arguments is an error.
pub(super) async fn declare(
    connection: &Connection,
    spec: &SubscriptionSpec,
    settings: &RabbitMqSettings,
) -> lapin::Result<Channel> {
    let channel = declare_dead_letters(connection, spec, settings).await?;
    declare_queues(&channel, spec, settings).await?;
    Ok(channel)
}

async fn declare_queues(channel: &Channel, spec: &SubscriptionSpec, settings: &RabbitMqSettings) -> lapin::Result<()> {
    let queue = spec.queue(settings);
    if settings.exchange_layout == ExchangeLayout::Fanout {
        let topic = spec.pattern.as_str();
        layout::declare_exchange(channel, topic).await?;
        if spec.options.ephemeral {
            declare_ephemeral(channel, &queue, settings).await?
        } else {
            layout::declare_queue(channel, &queue).await?
        }
        return bind(channel, &queue, topic, &queue).await;
    }
    if spec.options.ephemeral {
        declare_ephemeral(channel, &queue, settings).await?;
    } else {
        let mut arguments = queue_arguments(spec, settings, 1);
        if spec.is_partitioned() {
            arguments.insert("x-single-active-consumer".into(), AMQPValue::Boolean(true));
        }
        declare_kept(channel, &queue, settings, arguments).await?;
    }
    if spec.is_partitioned() {
        for index in 0..settings.partitions {
            let mut arguments = queue_arguments(spec, settings, u32::from(settings.partitions));
            arguments.insert("x-single-active-consumer".into(), AMQPValue::Boolean(true));
            declare_kept(channel, &spec.partition(index, settings), settings, arguments).await?;
        }
    }
    bind(channel, &queue, &settings.exchange_name, spec.pattern.as_str()).await
}

/// Declares the queue of messages that wait `level` milliseconds at most.
pub(super) async fn declare_retry(channel: &Channel, settings: &RabbitMqSettings, level: u64) -> lapin::Result<()> {
    let name = format!("{}.{level}", retry_exchange(settings));
    let mut arguments = FieldTable::default();
    // A message that has waited goes through the default exchange to the queue that its routing key
    // names.
    arguments.insert("x-dead-letter-exchange".into(), text(""));
    arguments.insert("x-message-ttl".into(), number(level));
    declare_kept(channel, &name, settings, arguments).await?;
    let mut matching = FieldTable::default();
    matching.insert("x-match".into(), text("all"));
    matching.insert(RETRY_DELAY.into(), number(level));
    let exchange = retry_exchange(settings);
    let options = QueueBindOptions::default();
    channel
        .queue_bind(name.into(), exchange.into(), "".into(), options, matching)
        .await
}

/// Deletes the retry queues and the queue of dead letters of ephemeral subscriptions if they are
/// empty, and the exchanges that nothing is bound to.
pub(super) async fn delete_unused(connection: &Connection, settings: &RabbitMqSettings) -> lapin::Result<()> {
    let retry = retry_exchange(settings);
    let queues = RETRY_LEVELS.map(|step| format!("{retry}.{}", 1_u64 << step));
    for queue in queues.chain([ephemeral_dead_letters(settings)]) {
        let options = QueueDeleteOptions {
            if_empty: true,
            ..QueueDeleteOptions::default()
        };
        // The broker closes the channel when it refuses, so each deletion has its own.
        let channel = connection.create_channel().await?;
        let _ = channel.queue_delete(queue.into(), options).await;
        let _ = channel.close(200, "done".into()).await;
    }
    let messages = &settings.exchange_name;
    let letters = &settings.dead_letter_exchange_name;
    for exchange in [messages, letters, &retry] {
        let options = ExchangeDeleteOptions {
            if_unused: true,
            ..ExchangeDeleteOptions::default()
        };
        let channel = connection.create_channel().await?;
        let _ = channel.exchange_delete(exchange.as_str().into(), options).await;
        let _ = channel.close(200, "done".into()).await;
    }
    Ok(())
}

async fn declare_dead_letters(
    connection: &Connection,
    spec: &SubscriptionSpec,
    settings: &RabbitMqSettings,
) -> lapin::Result<Channel> {
    let name = spec.dead_letters(settings);
    let channel = connection.create_channel().await?;
    let mut arguments = FieldTable::default();
    if spec.options.ephemeral {
        arguments.insert("x-max-length".into(), AMQPValue::LongInt(MAX_EPHEMERAL_DEAD_LETTERS));
        declare_kept(&channel, &name, settings, arguments).await?;
        return Ok(channel);
    }
    let channel = if settings.quorum_queues {
        declare_quorum_letters(connection, channel, &name, settings).await?
    } else {
        declare_kept(&channel, &name, settings, arguments).await?;
        channel
    };
    if settings.exchange_layout == ExchangeLayout::Topic {
        let exchange = &settings.dead_letter_exchange_name;
        bind(&channel, &name, exchange, spec.pattern.as_str()).await?;
    }
    Ok(channel)
}

/// Declares a quorum queue of dead letters, and returns the channel, or a new channel if the
/// broker has closed it.
///
/// From version 4 on the broker drops a message of a quorum queue that came back 20 times, and
/// dead letters come back whenever they are inspected: such a queue has a limit that is not
/// reached. A queue that was declared without a limit cannot be changed, and is used as it is.
async fn declare_quorum_letters(
    connection: &Connection,
    channel: Channel,
    name: &str,
    settings: &RabbitMqSettings,
) -> lapin::Result<Channel> {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    let older = arguments.clone();
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(i32::MAX));
    match declare_kept(&channel, name, settings, arguments).await {
        Ok(()) => return Ok(channel),
        Err(error) if refusal(&error) == Some(AMQPSoftError::PRECONDITIONFAILED) => {}
        Err(error) => return Err(error),
    }
    let channel = connection.create_channel().await?;
    declare_kept(&channel, name, settings, older).await?;
    tracing::warn!(
        queue = %name,
        "a dead-letter queue has no delivery limit of its own: from version 4 on RabbitMQ drops a letter that was \
         inspected 20 times; set the policy `delivery-limit` of the queue to -1, or delete the queue when it is empty"
    );
    Ok(channel)
}

/// Returns the arguments of a queue of `spec`, which has `share` queues.
fn queue_arguments(spec: &SubscriptionSpec, settings: &RabbitMqSettings, share: u32) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert(
        "x-dead-letter-exchange".into(),
        text(&settings.dead_letter_exchange_name),
    );
    arguments.insert("x-dead-letter-routing-key".into(), text(spec.pattern.as_str()));
    if settings.quorum_queues {
        arguments.insert("x-queue-type".into(), text("quorum"));
        arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(QUORUM_DELIVERY_LIMIT));
    }
    if let Some(length) = settings.max_queue_length {
        arguments.insert("x-max-length".into(), number(u64::from(length.div_ceil(share))));
        arguments.insert("x-overflow".into(), text("reject-publish"));
    }
    arguments
}

/// Declares a queue that outlives its consumers.
async fn declare_kept(
    channel: &Channel,
    name: &str,
    settings: &RabbitMqSettings,
    arguments: FieldTable,
) -> lapin::Result<()> {
    let options = QueueDeclareOptions {
        durable: settings.durable,
        ..QueueDeclareOptions::default()
    };
    channel.queue_declare(name.into(), options, arguments).await?;
    Ok(())
}

/// Declares a queue that ends with its connection, or some time after it.
async fn declare_ephemeral(channel: &Channel, name: &str, settings: &RabbitMqSettings) -> lapin::Result<()> {
    let mut arguments = FieldTable::default();
    let mut options = QueueDeclareOptions::default();
    match settings.reply_queue_expiry {
        None => (options.exclusive, options.auto_delete) = (true, true),
        Some(expiry) => {
            arguments.insert("x-expires".into(), number(milliseconds(expiry).max(1)));
        }
    }
    channel.queue_declare(name.into(), options, arguments).await?;
    Ok(())
}

async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) -> lapin::Result<()> {
    let options = QueueBindOptions::default();
    let arguments = FieldTable::default();
    let queue = queue.into();
    let exchange = exchange.into();
    channel
        .queue_bind(queue, exchange, key.into(), options, arguments)
        .await
}

/// Returns `span` in whole milliseconds, at most the maximum that the broker accepts.
pub(super) fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).min(u32::MAX.into())
}

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}
