//! Channels for publishing with confirms, each for one message at a time.
//!
//! The broker refuses a message by closing its channel. A message on a channel of its own learns
//! its own answer, and not the answer to another message.

use std::sync::{Mutex, PoisonError};

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{Channel, Confirmation, Connection};
use tokio::sync::Semaphore;

use super::outgoing::Outgoing;

/// Maximum number of channels of a connection; further publishers wait.
const MAX_OPEN: usize = 8;

/// The end of a publication that the broker has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Published {
    /// At least one queue has the message.
    Routed,
    /// No queue is bound to the topic; the broker returned the message.
    Unroutable,
    /// A full queue refused the message.
    Refused,
}

/// The idle channels of a session.
pub(super) struct ConfirmChannels {
    idle: Mutex<Vec<Channel>>,
    in_flight: Semaphore,
}

impl ConfirmChannels {
    pub(super) fn new() -> Self {
        Self {
            idle: Mutex::default(),
            in_flight: Semaphore::new(MAX_OPEN),
        }
    }

    /// Publishes a message and waits for the broker's confirm.
    ///
    /// Cancel safety: a channel without its confirm is dropped, never used again.
    pub(super) async fn publish(&self, connection: &Connection, message: &Outgoing<'_>) -> lapin::Result<Published> {
        let _permit = self.in_flight.acquire().await;
        let channel = match self.take() {
            Some(channel) => channel,
            // Boxed, since most messages find a channel and carry the future all the same.
            None => Box::pin(open(connection)).await?,
        };
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let exchange = message.route.exchange.into();
        let key = message.route.key.into();
        let sending = channel.basic_publish(exchange, key, options, message.body, message.next_properties());
        let published = match sending.await?.await? {
            Confirmation::Ack(None) | Confirmation::NotRequested => Published::Routed,
            Confirmation::Ack(Some(_)) => Published::Unroutable,
            Confirmation::Nack(_) => Published::Refused,
        };
        self.put_back(channel);
        Ok(published)
    }

    fn take(&self) -> Option<Channel> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // A channel that the broker closed meanwhile is of no use.
        std::iter::from_fn(|| idle.pop()).find(|channel| channel.status().connected())
    }

    fn put_back(&self, channel: Channel) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(channel);
    }
}

/// Opens a channel with the broker's confirms.
pub(super) async fn open(connection: &Connection) -> lapin::Result<Channel> {
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    Ok(channel)
}
