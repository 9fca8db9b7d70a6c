//! Publishing: until the broker has confirmed a message, it is sent again over each new connection.

use std::sync::Arc;
use std::time::Duration;

use pulsar::producer::Message;
use rockbot_core::messaging::{BusError, MessageEnvelope, Reach};
use rockbot_core::support::deadline_after;
use tokio::time::{self, Instant};

use super::error::{Answer, answer, provider};
use super::link::{Link, OPERATION_TIME};
use super::mapping;
use crate::copies::Copies;
use crate::meters;

/// Delay before a message is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// The publishing side of a bus. Cheap to clone.
#[derive(Clone)]
pub(super) struct Publisher {
    pub(super) link: Arc<Link>,
}

impl Publisher {
    /// Publishes a message under a topic of the bus.
    pub(super) async fn publish(&self, topic: &str, envelope: &MessageEnvelope) -> Result<Reach, BusError> {
        let settings = &self.link.settings;
        if self.link.closed.is_cancelled() {
            return Err(BusError::Closed);
        }
        let pulsar_topic = settings.pulsar_topic(topic)?;
        let size = envelope.size();
        let limit = settings.max_message_bytes;
        if size > limit {
            return Err(BusError::TooLarge { size, limit });
        }
        match self.send(&pulsar_topic, &mapping::message(envelope)?).await {
            Ok(()) => Ok(Reach::Unknown),
            Err(BusError::Rejected(_)) => Err(BusError::Rejected(topic.to_owned())),
            Err(error) => Err(error),
        }
    }

    /// Sends a message to a topic of Pulsar, and waits until the broker has it.
    pub(super) async fn send(&self, topic: &str, message: &Message) -> Result<(), BusError> {
        let settings = &self.link.settings;
        let deadline = deadline_after(Instant::now(), settings.publish_wait);
        let copies = Copies::default();
        loop {
            let session = self.link.session(deadline).await?;
            meters::sent();
            let sending = time::timeout(OPERATION_TIME, session.producers.send(topic, message, &copies));
            let sending = session.lost.run_until_cancelled(sending);
            let error = match time::timeout_at(deadline, sending).await {
                Ok(Some(Ok(Ok(())))) => {
                    meters::confirmed();
                    return Ok(());
                }
                Ok(Some(Ok(Err(error)))) => match answer(&error) {
                    Some(Answer::Full) if !copies.are_several() => {
                        meters::refused();
                        return Err(BusError::Rejected(topic.to_owned()));
                    }
                    Some(Answer::Never | Answer::Full) => return Err(provider("cannot publish on", settings, error)),
                    Some(Answer::NotYet | Answer::Busy) => error.to_string(),
                    None => {
                        session.give_up(&error);
                        error.to_string()
                    }
                },
                Ok(Some(Err(elapsed))) => {
                    session.give_up(&elapsed);
                    elapsed.to_string()
                }
                Ok(None) => "the connection was lost".to_owned(),
                Err(elapsed) => return Err(provider("a message was not confirmed in time by", settings, elapsed)),
            };
            // It is not known whether the broker has the message. The next copy has the same id and a note
            // that marks it as a copy, so that receivers can recognize it.
            tracing::debug!(%error, "a message was not confirmed; sending it again");
            time::sleep(PAUSE).await;
        }
    }
}
