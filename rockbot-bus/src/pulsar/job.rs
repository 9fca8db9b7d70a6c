//! A delivered message until it is settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pulsar::consumer::Message;
use pulsar::producer::Message as Outgoing;
use pulsar::proto::MessageIdData;
use rockbot_core::messaging::{BusError, DeadLetterReason, Delivery, Disposition, MessageEnvelope};
use rockbot_core::{Clock as _, MessageId, SystemClock, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::dead_letters;
use super::mapping::{self, ATTEMPTS, Arrived, DUE};
use super::worker::Worker;
use crate::consumer::{SettledKey, log_dead_letter};

/// Delay before a message is moved again after the broker did not take it.
const PAUSE: Duration = Duration::from_secs(1);

/// The purpose of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To handle the messages of the topic itself.
    Handle,
    /// To handle the messages that wait for another attempt.
    Retry,
}

/// A message to acknowledge.
pub(super) struct Ack {
    pub(super) topic: String,
    pub(super) id: MessageIdData,
}

/// A message that this consumer holds. The broker delivers a message that is dropped unsettled
/// again, to the next consumer.
pub(super) struct Job {
    worker: Arc<Worker>,
    /// The message's topic and id at the broker, for its acknowledgement.
    ack: Ack,
    acknowledger: mpsc::Sender<Ack>,
    /// Number of held messages of the same feed.
    held: Arc<AtomicUsize>,
    pub(super) envelope: Arc<MessageEnvelope>,
    /// The number of attempts before this delivery.
    earlier: u32,
    /// The time before which the message is not to be handled, in milliseconds since 1970.
    due: u64,
    /// The identity of this delivery, if the broker may repeat it.
    key: Option<SettledKey>,
    is_settled: bool,
}

impl Job {
    /// Takes a message that arrived.
    pub(super) fn new(
        worker: &Arc<Worker>,
        purpose: Purpose,
        message: Message<Vec<u8>>,
        held: &Arc<AtomicUsize>,
        acknowledger: &mpsc::Sender<Ack>,
    ) -> Self {
        held.fetch_add(1, Ordering::AcqRel);
        worker.held.fetch_add(1, Ordering::AcqRel);
        worker.taken.fetch_add(1, Ordering::AcqRel);
        let id = message.message_id().clone();
        // Only a message that came through the retry topic was moved by a bus; a publisher's claim
        // counts for nothing.
        let is_moved = purpose == Purpose::Retry;
        let metadata = &message.payload.metadata;
        let origin = mapping::origin(metadata).filter(|_| is_moved);
        let is_repeated = origin.is_some();
        let broker_id = origin.or_else(|| mapping::broker_id(&message.topic, &id));
        let arrived = mapping::read(metadata, message.payload.data, broker_id.as_deref());
        let (earlier, due) = if is_moved { way(&arrived, is_repeated) } else { (0, 0) };
        // Another copy may have been handled, here or elsewhere.
        let earlier = earlier.max(u32::from(arrived.is_resent()));
        Self {
            worker: Arc::clone(worker),
            ack: Ack {
                topic: message.topic,
                id,
            },
            acknowledger: acknowledger.clone(),
            held: Arc::clone(held),
            envelope: Arc::new(arrived.envelope),
            earlier,
            due,
            key: broker_id.map(|id| (MessageId::from(id), 0)),
            is_settled: false,
        }
    }

    /// Returns `true` if the message may be handled now.
    pub(super) fn is_due(&self) -> bool {
        self.due <= mapping::now()
    }

    /// Waits until the message may be handled: not every broker delays messages that are to be
    /// delivered later.
    pub(super) async fn until_due(&self) {
        SystemClock.sleep_until(Timestamp::from_millis(self.due)).await;
    }

    /// Handles the message and settles it. A message that is retried here gives back its `permit`
    /// meanwhile; when `stop` is cancelled, it goes back to the broker.
    pub(super) async fn run(mut self, permit: OwnedSemaphorePermit, stop: CancellationToken) {
        let mut permit = Some(permit);
        let turn = self
            .key
            .as_ref()
            .map(|(id, _)| self.worker.in_flight.enter(id.as_str()));
        // An earlier copy of this message, delivered over a lost connection, may still be running.
        let _turn = match turn {
            Some(turn) => Some(turn.await),
            None => None,
        };
        if self.key.as_ref().is_some_and(|key| self.worker.settled.contains(key)) {
            return self.settle().await;
        }
        if let Some(why) = self.too_large() {
            return Box::pin(self.bury(DeadLetterReason::Rejected, &why, &stop)).await;
        }
        // Rare steps are boxed, since the task of each message has room for all of them.
        loop {
            match self.handle().await {
                Disposition::Ack => return self.settle().await,
                Disposition::DeadLetter { reason } => {
                    return Box::pin(self.bury(DeadLetterReason::Rejected, &reason, &stop)).await;
                }
                Disposition::Retry { reason } => match self.worker.spec.options.retry.delay_after(self.attempt()) {
                    None => return Box::pin(self.bury(DeadLetterReason::Exhausted, &reason, &stop)).await,
                    Some(delay) if self.worker.retries_here() => {
                        drop(permit.take());
                        if time::timeout(delay, stop.cancelled()).await.is_ok() {
                            return;
                        }
                        permit = Arc::clone(&self.worker.permits).acquire_owned().await.ok();
                        self.earlier = self.attempt();
                    }
                    Some(delay) => return Box::pin(self.postpone(delay, &stop)).await,
                },
            }
        }
    }

    fn too_large(&self) -> Option<String> {
        let limit = self.worker.publisher.link.settings.max_message_bytes;
        (self.envelope.size() > limit).then(|| format!("the message is larger than {limit} bytes"))
    }

    fn attempt(&self) -> u32 {
        self.earlier.saturating_add(1)
    }

    async fn handle(&self) -> Disposition {
        let delivery = Delivery::new(self.worker.spec.pattern.as_str(), Arc::clone(&self.envelope))
            .with_attempt(self.attempt())
            .with_trust(self.worker.publisher.link.settings.trust);
        self.worker.handle(delivery).await
    }

    async fn settle(&mut self) {
        self.is_settled = true;
        if let Some(key) = self.key.clone() {
            self.worker.settled.insert(key);
        }
        // The task of the topic is gone only if the whole consumer ends.
        self.held.fetch_sub(1, Ordering::AcqRel);
        let ack = Ack {
            topic: self.ack.topic.clone(),
            id: self.ack.id.clone(),
        };
        let _ = self.acknowledger.send(ack).await;
    }

    /// Sends the message to the retry topic of the subscription and settles it.
    async fn postpone(&mut self, delay: Duration, stop: &CancellationToken) {
        let wait = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let due = mapping::now().saturating_add(wait);
        let notes = [(ATTEMPTS, self.attempt().to_string()), (DUE, due.to_string())];
        let message = Outgoing {
            deliver_at_time: i64::try_from(due).ok(),
            ..mapping::moved(&self.envelope, &notes)
        };
        self.move_to(self.worker.retry_topic(), message, stop).await;
    }

    /// Sends the message to its dead-letter topic and settles it.
    async fn bury(&mut self, reason: DeadLetterReason, why: &str, stop: &CancellationToken) {
        let spec = &self.worker.spec;
        let attempts = self.attempt();
        let topic = spec.pattern.as_str();
        log_dead_letter(&spec.name, topic, &self.envelope.message_id, attempts, reason, why);
        let message = mapping::moved(&self.envelope, &dead_letters::notes(spec, attempts, reason, why));
        let link = &self.worker.publisher.link;
        let topic = dead_letters::topic(spec, &link.settings);
        // Without a subscription the broker would not keep it.
        let kept = async { dead_letters::keep(link, topic?).await };
        if let Some(topic) = stop.run_until_cancelled(kept).await {
            self.move_to(topic, message, stop).await;
        }
    }

    /// Settles the message once another topic has it. Until then it stays with this consumer.
    async fn move_to(&mut self, topic: Result<String, BusError>, message: Outgoing, stop: &CancellationToken) {
        loop {
            let sent = match &topic {
                Ok(topic) => self.worker.publisher.send(topic, &message).await,
                Err(error) => {
                    tracing::warn!(%error, "a message cannot be moved to another topic; it goes back to its own");
                    return;
                }
            };
            let Err(error) = sent else {
                return self.settle().await;
            };
            tracing::warn!(%error, "a message cannot be moved to another topic; trying again");
            if time::timeout(PAUSE, stop.cancelled()).await.is_ok() {
                return;
            }
        }
    }
}

/// Returns the number of attempts before this delivery of a moved message, and the time before
/// which it is not to be handled.
fn way(arrived: &Arrived, is_repeated: bool) -> (u32, u64) {
    let due = arrived.number(DUE).unwrap_or_default();
    // A message that is delivered before its time was not begun by the consumer that gave it back.
    let unfinished = u64::from(is_repeated && due <= mapping::now());
    let earlier = arrived.number(ATTEMPTS).unwrap_or_default().min(1 << 20) + unfinished;
    (u32::try_from(earlier).unwrap_or(u32::MAX), due)
}

impl Drop for Job {
    fn drop(&mut self) {
        self.worker.held.fetch_sub(1, Ordering::AcqRel);
        if !self.is_settled {
            self.held.fetch_sub(1, Ordering::AcqRel);
            self.worker.unfinished.fetch_add(1, Ordering::AcqRel);
        }
    }
}
