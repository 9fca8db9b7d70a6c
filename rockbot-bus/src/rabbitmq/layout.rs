//! The layouts of exchanges: the original's, and fanout exchanges as other frameworks declare them.
//!
//! In the layout of fanout exchanges each topic is an exchange of its own, with plain headers:
//!
//! | name | kind | purpose |
//! |---|---|---|
//! | `TOPIC` | fanout exchange, durable | the messages of a topic; the routing key is empty |
//! | `NAME` | queue, neither durable nor exclusive, without arguments | subscription NAME |
//! | `NAME`, ephemeral | queue, exclusive and deleted with its consumer | subscription NAME |
//! | `NAME.dlq` | queue | its dead letters |
//!
//! Retries take the same queues as in the original's layout.

use lapin::options::{ExchangeDeclareOptions, ExchangeDeleteOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ExchangeKind};
use rockbot_core::messaging::{BusError, MessageEnvelope};

use super::mapping::{self, as_number, as_text};

/// The layout of the exchanges that carry messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ExchangeLayout {
    /// One topic exchange for all messages, with queues and headers as the original has them. The
    /// default.
    #[default]
    Topic,
    /// A durable fanout exchange for each topic, with plain headers and transient messages, as
    /// TrustGraph has them. A subscription is to one topic without wildcards, its name is the name of
    /// its queue, and it has no partitions. The settings of the original's exchanges and queues, such
    /// as quorum queues, do not apply.
    Fanout,
}

/// The delivery mode of messages that end with the broker.
const TRANSIENT: u8 = 1;

/// Declares the exchange of a topic.
pub(super) async fn declare_exchange(channel: &Channel, topic: &str) -> lapin::Result<()> {
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let kind = ExchangeKind::Fanout;
    let none = FieldTable::default();
    channel.exchange_declare(topic.into(), kind, options, none).await
}

/// Deletes the exchanges of `topics` that nothing is bound to.
pub(super) async fn delete_exchanges(connection: &Connection, topics: &[String]) -> lapin::Result<()> {
    for topic in topics {
        let options = ExchangeDeleteOptions {
            if_unused: true,
            ..ExchangeDeleteOptions::default()
        };
        // The broker closes the channel when it refuses, so each deletion has its own.
        let channel = connection.create_channel().await?;
        let _ = channel.exchange_delete(topic.as_str().into(), options).await;
        let _ = channel.close(200, "done".into()).await;
    }
    Ok(())
}

/// Declares the queue of a subscription that outlives its consumers.
pub(super) async fn declare_queue(channel: &Channel, name: &str) -> lapin::Result<()> {
    let options = QueueDeclareOptions::default();
    let none = FieldTable::default();
    channel.queue_declare(name.into(), options, none).await?;
    Ok(())
}

impl ExchangeLayout {
    /// Returns the envelope of a message that arrived.
    pub(super) fn envelope(self, properties: &BasicProperties, body: Vec<u8>) -> MessageEnvelope {
        match self {
            Self::Topic => mapping::envelope(properties, body),
            Self::Fanout => plain_envelope(properties, body),
        }
    }
}

/// Returns the properties of a message with plain headers.
pub(super) fn properties(envelope: &MessageEnvelope) -> Result<BasicProperties, BusError> {
    let properties = mapping::properties(envelope, false)?;
    let mut headers = FieldTable::default();
    for (name, value) in &envelope.headers {
        headers.insert(
            mapping::header_name(name)?,
            AMQPValue::LongString(value.as_str().into()),
        );
    }
    Ok(properties.with_headers(headers).with_delivery_mode(TRANSIENT))
}

/// Returns the envelope of a message with plain headers. Numbers are read as texts.
fn plain_envelope(properties: &BasicProperties, body: Vec<u8>) -> MessageEnvelope {
    let bare = properties.clone().with_headers(FieldTable::default());
    let mut envelope = mapping::envelope(&bare, body);
    let headers = properties.headers().iter().flat_map(|table| table.inner());
    // Notes of this bus and of the broker about the way of a message are none of its headers.
    let is_note = |name: &str| {
        ["x-rockbot-", "x-first-death-", "x-last-death-"]
            .iter()
            .any(|note| name.starts_with(note))
    };
    for (name, value) in headers.filter(|(name, _)| !is_note(name.as_str())) {
        let text = as_text(value).or_else(|| as_number(value).map(|number| number.to_string()));
        if let Some(text) = text {
            envelope.headers.insert(name.as_str().to_owned(), text);
        }
    }
    envelope
}
