//! A delivered message until it is settled.
//!
//! An acknowledgement is handed to the client and not waited for: closing the channel comes after
//! it, and a lost one means a redelivery that the consumer knows.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;
use lapin::options::{BasicAckOptions, BasicNackOptions};
use lapin::types::AMQPValue;
use lapin::{Acker, BasicProperties, Channel};
use rockbot_core::messaging::{BusError, DeadLetterReason, Delivery, Disposition, MessageEnvelope, check_topic};
use rockbot_core::support::loggable;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::channels::Published;
use super::connection;
use super::dead_letters;
use super::layout::ExchangeLayout;
use super::mapping::{self, ATTEMPTS, KeptHeaders, MAX_HEADERS, TOPIC};
use super::worker::Worker;
use crate::consumer::{SettledKey, log_dead_letter};
use crate::meters;

/// Delay before a message is moved again after the broker did not take it.
const PAUSE: Duration = Duration::from_secs(1);
/// Number of refusals after which a message is moved with fewer headers, or becomes a dead letter.
const MAX_REFUSALS: usize = 3;

/// The channel that messages arrive on. Cheap to clone.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) channel: Arc<Channel>,
    /// Cancelled when the connection is lost: an operation that waits for the client of a cut
    /// connection may wait for ever.
    pub(super) lost: CancellationToken,
}

/// A message that this consumer holds. A message that is dropped unsettled goes back to the queue
/// with its channel.
pub(super) struct Job {
    worker: Arc<Worker>,
    acker: Acker,
    tag: u64,
    source: Source,
    properties: BasicProperties,
    pub(super) envelope: Arc<MessageEnvelope>,
    topic: Arc<str>,
    /// The number of attempts before this delivery.
    earlier: u32,
    /// Deliveries that ended without a result: with their connection or process.
    unfinished: u32,
    /// The identity of this delivery.
    key: SettledKey,
    is_settled: bool,
}

impl Job {
    /// Takes a message that arrived over `source`.
    pub(super) fn new(worker: &Arc<Worker>, delivery: lapin::message::Delivery, source: &Source) -> Self {
        worker.held.fetch_add(1, Ordering::AcqRel);
        worker.taken.fetch_add(1, Ordering::AcqRel);
        let properties = delivery.properties;
        if delivery.redelivered {
            meters::redelivered();
        }
        // Only a message that came through the default exchange was readdressed by a bus; a publisher's
        // claim counts for nothing.
        let is_readdressed = delivery.exchange.as_str().is_empty();
        let topic = mapping::header_text(&properties, TOPIC);
        let topic = topic.filter(|topic| is_readdressed && check_topic(topic).is_ok());
        let layout = worker.link().settings.exchange_layout;
        let topic = topic.unwrap_or_else(|| match layout {
            ExchangeLayout::Topic => delivery.routing_key.as_str().to_owned(),
            ExchangeLayout::Fanout => worker.spec.pattern.as_str().to_owned(),
        });
        let earlier = mapping::header_number(&properties, ATTEMPTS).filter(|_| is_readdressed);
        let before = mapping::header_number(&properties, "x-delivery-count").unwrap_or(1);
        let clamp = |number: i64| u32::try_from(number.clamp(0, 1 << 20)).unwrap_or_default();
        let envelope = layout.envelope(&properties, delivery.data);
        // Another copy may have been handled, here or elsewhere.
        let resent = u32::from(mapping::is_resent(&properties));
        let earlier = clamp(earlier.unwrap_or_default()).max(resent);
        Self {
            worker: Arc::clone(worker),
            acker: delivery.acker,
            tag: delivery.delivery_tag,
            source: source.clone(),
            key: (envelope.message_id.clone(), earlier),
            envelope: Arc::new(envelope),
            properties,
            topic: topic.into(),
            earlier,
            unfinished: if delivery.redelivered { clamp(before) } else { 0 },
            is_settled: false,
        }
    }

    /// Handles the message and settles it. In a partition it is handled again after a delay, during
    /// which it gives back its `permit`; when `stop` is cancelled meanwhile, it goes back to the
    /// queue.
    pub(super) async fn run(mut self, permit: OwnedSemaphorePermit, stop: CancellationToken) {
        let mut permit = Some(permit);
        let turn = self.worker.in_flight.enter(self.envelope.message_id.as_str());
        // An earlier copy of this message, delivered over a lost connection, may still be running.
        let _turn = turn.await;
        if self.is_copy() {
            return self.ack();
        }
        // The broker has given a message of a lost connection to another consumer, or will give it to
        // this one again.
        if !self.acker.usable() {
            return;
        }
        if let Some(why) = self.too_large() {
            return Box::pin(self.bury(DeadLetterReason::Rejected, &why)).await;
        }
        // Rare steps are boxed, since the task of each message has room for all of them.
        loop {
            let attempt = self.attempt();
            match self.handle(attempt).await {
                Disposition::Ack => return self.ack(),
                Disposition::DeadLetter { reason } => {
                    return Box::pin(self.bury(DeadLetterReason::Rejected, &reason)).await;
                }
                Disposition::Retry { reason } => match self.worker.spec.options.retry.delay_after(attempt) {
                    None => return Box::pin(self.bury(DeadLetterReason::Exhausted, &reason)).await,
                    // Its partition waits for it, so that its order is kept.
                    Some(delay) if self.worker.spec.is_partitioned() => {
                        drop(permit.take());
                        if time::timeout(delay, stop.cancelled()).await.is_ok() {
                            return;
                        }
                        permit = Arc::clone(&self.worker.permits).acquire_owned().await.ok();
                        (self.earlier, self.unfinished) = (attempt, 0);
                    }
                    Some(delay) => return Box::pin(self.postpone(attempt, delay)).await,
                },
            }
        }
    }

    /// Returns the reason why the message cannot be handled: a message that is too large could not be
    /// sent to a retry queue.
    fn too_large(&self) -> Option<String> {
        let limit = self.worker.link().settings.max_message_bytes;
        if self.envelope.size() > limit {
            return Some(format!("the message is larger than {limit} bytes"));
        }
        mapping::has_large_headers(&self.properties)
            .then(|| format!("the headers of the message are larger than {MAX_HEADERS} bytes"))
    }

    /// Sends the message on to another queue, with its order kept by the caller, and settles it.
    pub(super) async fn forward(mut self, queue: &str) {
        if self.is_copy() {
            return self.ack();
        }
        if let Some(why) = self.too_large() {
            return self.bury(DeadLetterReason::Rejected, &why).await;
        }
        let mut properties = self.readdressed(self.earlier, Vec::new(), KeptHeaders::ALL);
        let mut refusals = 0;
        let mut may_be_there = self.unfinished > 0;
        while refusals < MAX_REFUSALS {
            if may_be_there {
                properties = mapping::resent(&properties);
            }
            let sent = self.send(queue, &properties).await;
            if let Some(why) = never_fits(&sent) {
                return self.bury(DeadLetterReason::Rejected, &why).await;
            }
            may_be_there |= sent.is_err();
            // A full queue has room later.
            refusals += usize::from(!matches!(sent, Ok(Published::Refused)));
            if self.moved(sent).await.is_break() {
                return;
            }
        }
        let why = "the broker does not take it to the queue of its partition";
        self.bury(DeadLetterReason::Exhausted, why).await;
    }

    /// Returns the message, whose handler has not begun, to the end of its queue with the attempts
    /// that it had. A negative acknowledgement keeps its place, but the next delivery would count as
    /// a further attempt.
    pub(super) async fn give_back(self, queue: &str) {
        let attempts = self.attempt().saturating_sub(1);
        let properties = self.readdressed(attempts, Vec::new(), KeptHeaders::ALL);
        let is_sent =
            self.too_large().is_none() && matches!(self.send(queue, &properties).await, Ok(Published::Routed));
        if is_sent {
            self.acknowledge()
        } else {
            self.requeue().await
        }
    }

    async fn requeue(&self) {
        let options = BasicNackOptions {
            requeue: true,
            ..BasicNackOptions::default()
        };
        // On a lost connection the broker returns it by itself.
        let _ = connection::run(&self.source.lost, self.acker.nack(options)).await;
    }

    /// Returns `true` if this delivery was settled before, and the broker did not learn of it.
    fn is_copy(&self) -> bool {
        self.unfinished > 0 && self.worker.settled.contains(&self.key)
    }

    fn attempt(&self) -> u32 {
        self.earlier.saturating_add(self.unfinished).saturating_add(1)
    }

    async fn handle(&self, attempt: u32) -> Disposition {
        let delivery = Delivery::new(Arc::clone(&self.topic), Arc::clone(&self.envelope))
            .with_attempt(attempt)
            .with_trust(self.worker.publisher.link.settings.trust);
        self.worker.handle(delivery).await
    }

    fn ack(&mut self) {
        self.is_settled = true;
        self.worker.settled.insert(self.key.clone());
        self.acknowledge();
    }

    /// Hands the acknowledgement to the client, which writes it in its turn: nothing depends on when,
    /// and closing the channel comes after it. The client's own `Acker::ack` takes the same frame by
    /// way of two more tasks.
    fn acknowledge(&self) {
        let sent = self.source.channel.basic_ack(self.tag, BasicAckOptions::default());
        if let Some(Err(error)) = sent.now_or_never() {
            tracing::debug!(%error, "an acknowledgement was lost; the broker delivers the message again");
        }
    }

    /// Sends the message to its dead-letter queue and settles it. It is tried until the broker takes
    /// it or the consumer ends: going back to its queue, the message would be handled again. With the
    /// notes of a dead letter its headers may be larger than a frame; headers that have no room are
    /// left out.
    async fn bury(&mut self, reason: DeadLetterReason, why: &str) {
        let subscription = self.worker.spec.name.clone();
        let attempt = self.attempt();
        let queue = self.worker.spec.dead_letters(&self.worker.link().settings);
        let id = &self.envelope.message_id;
        log_dead_letter(&subscription, &self.topic, id, attempt, reason, why);
        let mut kept = KeptHeaders::ALL;
        let mut refusals = 0;
        loop {
            let headers = dead_letters::headers(&subscription, reason, why, kept.max_frame);
            let properties = self.readdressed(attempt, headers, kept);
            let sent = self.send(&queue, &properties).await;
            match sent {
                Err(BusError::PropertyTooLong { limit, .. }) if limit < kept.max_frame => {
                    kept = kept.within(limit);
                    continue;
                }
                Ok(Published::Routed) => self.note_omitted(&properties),
                _ => {}
            }
            if self.moved(sent).await.is_break() {
                return;
            }
            refusals += 1;
            if refusals == MAX_REFUSALS {
                kept = kept.own();
            }
        }
    }

    /// Counts and logs a dead letter that has lost headers.
    fn note_omitted(&self, properties: &BasicProperties) {
        let omitted_headers = mapping::omitted_headers(properties);
        if omitted_headers > 0 {
            meters::shortened();
            tracing::warn!(
                subscription = %self.worker.spec.name, message_id = %loggable(self.envelope.message_id.as_str()),
                omitted_headers, "a dead letter is kept without headers that do not fit into a frame"
            );
        }
    }

    /// Sends the message to a retry queue and settles it.
    async fn postpone(&mut self, attempts: u32, delay: Duration) {
        let properties = self.readdressed(attempts, Vec::new(), KeptHeaders::ALL);
        let queue = self.worker.spec.queue(&self.worker.link().settings);
        for _ in 0..MAX_REFUSALS {
            let publisher = &self.worker.publisher;
            let sent = publisher.after(delay, &queue, &self.envelope.body, &properties).await;
            if let Some(why) = never_fits(&sent) {
                return self.bury(DeadLetterReason::Exhausted, &why).await;
            }
            if self.moved(sent).await.is_break() {
                return;
            }
        }
        let why = "the broker does not keep it for another attempt";
        self.bury(DeadLetterReason::Exhausted, why).await;
    }

    async fn send(&self, queue: &str, properties: &BasicProperties) -> Result<Published, BusError> {
        let publisher = &self.worker.publisher;
        publisher.to_queue(queue, &self.envelope.body, properties).await
    }

    /// Settles the message if another queue has it. Continues if the message is to be moved again;
    /// otherwise, it is settled or returns to its queue with its channel.
    async fn moved(&mut self, sent: Result<Published, BusError>) -> ControlFlow<()> {
        match sent {
            Ok(Published::Routed) => {
                self.ack();
                return ControlFlow::Break(());
            }
            Err(BusError::Closed) => return ControlFlow::Break(()),
            Ok(Published::Unroutable) => self.worker.redeclare().await,
            _ => {}
        }
        tracing::warn!(?sent, "a message cannot be moved to another queue; trying again");
        let is_stopped = time::timeout(PAUSE, self.worker.stop.cancelled()).await.is_ok();
        if is_stopped || !self.acker.usable() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn readdressed(&self, attempts: u32, mut headers: Vec<(&str, AMQPValue)>, kept: KeptHeaders) -> BasicProperties {
        headers.push((TOPIC, AMQPValue::LongString((*self.topic).into())));
        headers.push((ATTEMPTS, mapping::number(attempts.into())));
        mapping::readdressed(&self.properties, headers, kept)
    }
}

/// Returns the reason why a message cannot be moved with all of its headers: with the notes about
/// its way they do not fit into a frame.
fn never_fits(sent: &Result<Published, BusError>) -> Option<String> {
    match sent {
        Err(error @ BusError::PropertyTooLong { .. }) => Some(format!("it cannot be moved: {error}")),
        _ => None,
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.worker.held.fetch_sub(1, Ordering::AcqRel);
        if !self.is_settled {
            self.worker.unfinished.fetch_add(1, Ordering::AcqRel);
        }
    }
}
