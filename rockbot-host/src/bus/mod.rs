//! The bus of a process: messages between its own parts, without a broker.
//!
//! Nothing is kept on disk: what the bus holds ends with the process. What became of each message can be told
//! all the same: it was handled, or it is a dead letter with the reason, or it reached nobody and its publisher
//! was told so.

mod consumer;
mod dead_letters;
mod group;
mod meters;
mod queue;
mod reservation;
mod routes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{
    Bus, BusError, CloseReport, DeadLetter, DeadLetterReason, DeadLetters, Delivery, DeliveryHandler, MessageEnvelope,
    MessagePublisher, MessageSubscriber, Reach, SubscribeOptions, Subscription, SubscriptionControl, TopicPattern,
};
use rockbot_core::{Clock, MessageId, SystemClock};
use tokio::task::{JoinSet, coop};
use tokio::time;
use tokio_util::task::TaskTracker;

use consumer::Consumer;
use dead_letters::DeadLetterStore;
use group::ConsumerGroup;
use routes::Routes;

/// How long cancelled handlers may take to notice, once a closing bus has run out of time.
const GRACE: Duration = Duration::from_secs(1);

/// A bus inside one process. Cheap to clone; all clones are one bus.
///
/// A publisher waits while a subscription that the message reaches is full (or is refused, where the
/// subscription says so); it delivers to all of them or to none. All tasks belong to the bus and end with
/// [`Bus::close`], or with the last clone, which a handler that holds one never is. A subscription whose last
/// consumer leaves ends: what it still held becomes dead letters.
///
/// ```
/// use rockbot_core::messaging::{
///     Delivery, Disposition, MessageEnvelope, MessagePublisher, MessageSubscriberExt, Reach,
/// };
/// use rockbot_host::bus::InProcessBus;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::messaging::BusError> {
/// let bus = InProcessBus::new();
/// let audit = |delivery: Delivery| async move {
///     println!("{} under {}", delivery.envelope.message_type, delivery.topic);
///     Disposition::Ack
/// };
/// let _subscription = bus.on("billing.#", "audit", audit).await?;
/// let envelope = MessageEnvelope::new("billing.Invoice", r#"{"amount":7}"#);
/// assert_eq!(bus.publish("billing.invoice", envelope.into()).await?, Reach::Subscribers);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct InProcessBus {
    shared: Arc<Shared>,
}

/// What an [`InProcessBus`] allows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InProcessBusOptions {
    /// How long a publisher waits for room in each full subscription: 30 s by default.
    pub publish_wait: Duration,
    /// How large a message may be, its headers included: 16 MiB by default.
    pub max_message_bytes: usize,
    /// How many dead letters are kept: 1000 by default. The oldest ones are forgotten, and counted.
    pub max_dead_letters: usize,
    /// How far whoever can publish here is trusted: as the user, by default.
    pub trust: Trust,
    /// What tells when a message became a dead letter.
    pub clock: Arc<dyn Clock>,
}

impl Default for InProcessBusOptions {
    fn default() -> Self {
        Self {
            publish_wait: Duration::from_secs(30),
            max_message_bytes: 16 * 1024 * 1024,
            max_dead_letters: 1000,
            trust: Trust::User,
            clock: Arc::new(SystemClock),
        }
    }
}

impl Default for InProcessBus {
    fn default() -> Self {
        Self::with_options(InProcessBusOptions::default())
    }
}

impl InProcessBus {
    /// A bus with the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// A bus that allows what `options` say.
    pub fn with_options(options: InProcessBusOptions) -> Self {
        let dead_letters = DeadLetterStore::new(options.max_dead_letters, Arc::clone(&options.clock));
        Self {
            shared: Arc::new(Shared {
                options,
                routes: Routes::default(),
                members: Mutex::default(),
                tasks: Mutex::default(),
                dead_letters: Arc::new(dead_letters),
                closed: AtomicBool::new(false),
            }),
        }
    }

    /// How many dead letters were forgotten because there were too many.
    pub fn evicted_dead_letters(&self) -> u64 {
        self.shared.dead_letters.evicted()
    }
}

#[async_trait]
impl MessagePublisher for InProcessBus {
    async fn publish(&self, topic: &str, envelope: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
        // A publisher that never has to wait must not keep other tasks from running.
        coop::consume_budget().await;
        let (options, began) = (&self.shared.options, time::Instant::now());
        self.shared.check(&envelope)?;
        let route = self.shared.routes.find(topic)?;
        let mut reach = Reach::NoSubscribers;
        for (group, seat) in reservation::reserve(&route, options.publish_wait).await? {
            let delivery = Delivery {
                topic: Arc::clone(&route.topic),
                envelope: Arc::clone(&envelope),
                attempt: 0,
                trust: options.trust,
            };
            if group.push(seat, delivery) {
                reach = Reach::Subscribers;
            }
        }
        if reach == Reach::NoSubscribers && self.shared.is_closed() {
            return Err(BusError::Closed);
        }
        route.meters.record(began.elapsed());
        Ok(reach)
    }
}

#[async_trait]
impl MessageSubscriber for InProcessBus {
    async fn subscribe(
        &self,
        pattern: TopicPattern,
        name: &str,
        options: SubscribeOptions,
        handler: Arc<dyn DeliveryHandler>,
    ) -> Result<Subscription, BusError> {
        let workers = options.concurrency.max(1);
        let group = self.shared.join(name, &pattern, options)?;
        let consumer = Arc::new(Consumer::new(group));
        let control = ConsumerControl {
            workers: self.shared.spawn(workers, &handler, &consumer),
            consumer,
            bus: Arc::downgrade(&self.shared),
        };
        Ok(Subscription::new(pattern, name, control))
    }
}

#[async_trait]
impl Bus for InProcessBus {
    async fn close(&self, within: Duration) -> CloseReport {
        // Time that runs out is no error: what is left is told by the report.
        let _ = time::timeout(within, self.shared.until_idle()).await;
        self.shared.end();
        let mut tasks = std::mem::take(&mut *self.shared.tasks());
        let _ = time::timeout(GRACE, tasks.shutdown()).await;
        CloseReport {
            unfinished: self.shared.dead_letters.closed(),
        }
    }
}

#[async_trait]
impl DeadLetters for InProcessBus {
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>, BusError> {
        Ok(self.shared.dead_letters.oldest(limit))
    }

    async fn take_dead_letter(&self, subscription: &str, message: &MessageId) -> Result<Option<DeadLetter>, BusError> {
        Ok(self.shared.dead_letters.take(subscription, message))
    }
}

impl fmt::Debug for InProcessBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessBus")
            .field("subscriptions", &self.shared.members().keys())
            .field("closed", &self.shared.is_closed())
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Shared {
    options: InProcessBusOptions,
    routes: Routes,
    members: Mutex<Members>,
    /// The workers of all consumers.
    tasks: Mutex<JoinSet<()>>,
    dead_letters: Arc<DeadLetterStore>,
    closed: AtomicBool,
}

/// The subscriptions by name, each with the number of its consumers.
type Members = BTreeMap<Arc<str>, (Arc<ConsumerGroup>, usize)>;

impl Shared {
    fn check(&self, envelope: &MessageEnvelope) -> Result<(), BusError> {
        if self.is_closed() {
            return Err(BusError::Closed);
        }
        let (size, limit) = (envelope.size(), self.options.max_message_bytes);
        if size > limit {
            return Err(BusError::TooLarge { size, limit });
        }
        Ok(())
    }

    /// Finds the subscription that a new consumer belongs to, or begins it.
    fn join(
        &self,
        name: &str,
        pattern: &TopicPattern,
        options: SubscribeOptions,
    ) -> Result<Arc<ConsumerGroup>, BusError> {
        let mut members = self.members();
        if self.is_closed() {
            return Err(BusError::Closed);
        }
        if let Some((group, consumers)) = members.get_mut(name) {
            if !group.can_share(pattern, &options) {
                return Err(BusError::Conflict(name.to_owned()));
            }
            *consumers += 1;
            return Ok(Arc::clone(group));
        }
        let group = Arc::new(ConsumerGroup::new(
            name,
            pattern.clone(),
            options,
            Arc::clone(&self.dead_letters),
        ));
        members.insert(name.into(), (Arc::clone(&group), 1));
        self.reroute(&members);
        Ok(group)
    }

    /// Ends a subscription when its last consumer has left.
    fn leave(&self, group: &Arc<ConsumerGroup>) {
        let mut members = self.members();
        let entry = members
            .get_mut(group.name())
            .filter(|(known, _)| Arc::ptr_eq(known, group));
        let Some((_, consumers)) = entry else {
            return;
        };
        *consumers -= 1;
        if *consumers == 0 {
            members.remove(group.name());
            self.reroute(&members);
            drop(members);
            group.end(DeadLetterReason::Unsubscribed);
        }
    }

    fn reroute(&self, members: &Members) {
        self.routes
            .replace(members.values().map(|(group, _)| Arc::clone(group)).collect());
    }

    fn spawn(&self, workers: usize, handler: &Arc<dyn DeliveryHandler>, consumer: &Arc<Consumer>) -> TaskTracker {
        let tracker = TaskTracker::new();
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        for _ in 0..workers {
            let work = Arc::clone(consumer).work(Arc::clone(handler));
            tasks.spawn(tracker.track_future(work));
        }
        tracker.close();
        tracker
    }

    /// Waits until no subscription holds a message. A handler that finished may have published to another
    /// subscription, so they are all idle only if nothing was taken in while they were looked at.
    async fn until_idle(&self) {
        loop {
            let groups: Vec<_> = self.members().values().map(|(group, _)| Arc::clone(group)).collect();
            let accepted = || groups.iter().map(|group| group.accepted()).sum::<u64>();
            let before = accepted();
            if groups.iter().all(|group| group.is_idle()) && accepted() == before {
                return;
            }
            for group in &groups {
                group.until_idle().await;
            }
        }
    }

    /// Ends all subscriptions, for good.
    fn end(&self) {
        let mut members = self.members();
        self.closed.store(true, Ordering::Release);
        self.routes.replace(Vec::new());
        let ended = std::mem::take(&mut *members);
        drop(members);
        for (group, _) in ended.into_values() {
            group.end(DeadLetterReason::Closed);
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        // No code that can panic runs under the lock.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        // Outside a runtime, spawning panics before the set is changed.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends one consumer. Does not keep the bus alive.
#[derive(Debug)]
struct ConsumerControl {
    consumer: Arc<Consumer>,
    workers: TaskTracker,
    bus: Weak<Shared>,
}

#[async_trait]
impl SubscriptionControl for ConsumerControl {
    fn stop(&self) {
        if self.consumer.stop()
            && let Some(bus) = self.bus.upgrade()
        {
            bus.leave(self.consumer.group());
        }
    }

    async fn stopped(&self) {
        self.workers.wait().await;
    }

    fn is_active(&self) -> bool {
        !self.consumer.is_stopped() && !self.workers.is_empty()
    }
}
