//! Publishing: until the broker has confirmed a message, it is sent again over each new connection.

use std::sync::Arc;
use std::time::Duration;

use lapin::BasicProperties;
use lapin::protocol::AMQPSoftError;
use rockbot_core::messaging::{BusError, MessageEnvelope, Reach, check_topic};
use rockbot_core::support::deadline_after;
use tokio::time::{self, Instant};

use super::channels::{Published, Route};
use super::connection::{Link, Session};
use super::error::{provider, refusal};
use super::layout::{self, ExchangeLayout};
use super::mapping;
use super::topology::{self, RETRY_DELAY, RETRY_LEVELS};
use crate::meters;

/// Delay before a message is sent again after its connection failed.
const PAUSE: Duration = Duration::from_millis(50);

/// The publishing side of a bus. Cheap to clone.
#[derive(Clone)]
pub(super) struct Publisher {
    pub(super) link: Arc<Link>,
}

impl Publisher {
    /// Publishes a message under a topic.
    pub(super) async fn publish(&self, topic: &str, envelope: &MessageEnvelope) -> Result<Reach, BusError> {
        let settings = &self.link.settings;
        if self.link.closed.is_cancelled() {
            return Err(BusError::Closed);
        }
        check_topic(topic)?;
        let (size, limit) = (envelope.size(), settings.max_message_bytes);
        if size > limit {
            return Err(BusError::TooLarge { size, limit });
        }
        let (properties, route) = match settings.exchange_layout {
            ExchangeLayout::Topic => {
                let (exchange, key) = (settings.exchange_name.as_str(), topic);
                (
                    mapping::properties(envelope, settings.durable)?,
                    Route { exchange, key },
                )
            }
            ExchangeLayout::Fanout => {
                Box::pin(self.declare_exchange(topic)).await?;
                let (exchange, key) = (topic, "");
                (layout::properties(envelope)?, Route { exchange, key })
            }
        };
        match self.send(route, &envelope.body, &properties).await? {
            Published::Routed => Ok(Reach::Subscribers),
            Published::Unroutable => Ok(Reach::NoSubscribers),
            Published::Refused => Err(BusError::Rejected(topic.to_owned())),
        }
    }

    /// Sends a message to one queue.
    pub(super) async fn to_queue(
        &self,
        queue: &str,
        body: &[u8],
        properties: &BasicProperties,
    ) -> Result<Published, BusError> {
        self.send(Route::queue(queue), body, properties).await
    }

    /// Sends a message to a queue after `delay`.
    ///
    /// The message waits in a retry queue, whose maximum is the next power of two, and its own expiration is the exact
    /// delay. A queue expires from its head only, so a message behind one of a longer delay waits up to that maximum.
    /// All subscriptions share the queues, of which there are at most 26.
    pub(super) async fn after(
        &self,
        delay: Duration,
        queue: &str,
        body: &[u8],
        properties: &BasicProperties,
    ) -> Result<Published, BusError> {
        let settings = &self.link.settings;
        let (min, max) = (1 << RETRY_LEVELS.start(), 1 << RETRY_LEVELS.end());
        let delay = topology::milliseconds(delay).min(max);
        let level = delay.max(min).next_power_of_two();
        let step = mapping::number(level);
        let expiration = delay.to_string();
        let properties = mapping::readdressed(properties, vec![(RETRY_DELAY, step)]);
        let properties = properties.with_expiration(expiration.as_str().into());
        let exchange = topology::retry_exchange(settings);
        let route = Route {
            exchange: &exchange,
            key: queue,
        };
        self.declare_retry(level).await?;
        self.send(route, body, &properties).await
    }

    /// Declares the fanout exchange of a topic, once a connection.
    async fn declare_exchange(&self, topic: &str) -> Result<(), BusError> {
        let session = self.link.session(self.deadline()).await?;
        if session.knows_exchange(topic) {
            return Ok(());
        }
        let declared = async {
            let channel = session.channel().await?;
            layout::declare_exchange(&channel, topic).await?;
            channel.close(200, "done".into()).await
        };
        let declared = session.run(declared).await;
        declared.map_err(|error| provider("cannot declare an exchange on", &self.link.settings, error))?;
        session.know_exchange(topic);
        Ok(())
    }

    async fn declare_retry(&self, level: u64) -> Result<(), BusError> {
        let settings = &self.link.settings;
        let session = self.link.session(self.deadline()).await?;
        if session.knows_delay(level) {
            return Ok(());
        }
        let declared = async {
            let channel = session.channel().await?;
            topology::declare_retry(&channel, settings, level).await?;
            channel.close(200, "done".into()).await
        };
        let declared = session.run(declared).await;
        declared.map_err(|error| provider("cannot declare a retry queue on", settings, error))?;
        session.know_delay(level);
        Ok(())
    }

    async fn send(&self, route: Route<'_>, body: &[u8], properties: &BasicProperties) -> Result<Published, BusError> {
        let (settings, deadline) = (&self.link.settings, self.deadline());
        loop {
            let session = self.link.session(deadline).await?;
            meters::sent();
            let sending = session.publish(route, body, properties.clone());
            let error = match time::timeout_at(deadline, sending).await {
                Ok(Ok(published)) => {
                    match published {
                        Published::Routed => meters::confirmed(),
                        Published::Unroutable => meters::returned(),
                        Published::Refused => meters::refused(),
                    }
                    return Ok(published);
                }
                Ok(Err(error)) => error,
                Err(elapsed) => return Err(provider("a message was not confirmed in time by", settings, elapsed)),
            };
            if self.link.closed.is_cancelled() {
                return Err(BusError::Closed);
            }
            if !may_pass(&session, &error) || Instant::now() >= deadline {
                return Err(provider("cannot publish on", settings, error));
            }
            // It is not known whether the broker has the message. The same id is sent again, so that receivers can
            // recognize the second copy.
            tracing::debug!(%error, "a message was not confirmed; sending it again");
            time::sleep(PAUSE).await;
        }
    }

    fn deadline(&self) -> Instant {
        deadline_after(Instant::now(), self.link.settings.publish_wait)
    }
}

/// Returns `true` if the message may be confirmed at the next attempt.
fn may_pass(session: &Session, error: &lapin::Error) -> bool {
    match refusal(error) {
        // The exchange is gone: the next session declares it.
        Some(AMQPSoftError::NOTFOUND) => {
            session.give_up();
            true
        }
        Some(_) => false,
        None => true,
    }
}
