//! The state that all clones of a bus share: its subscriptions and the tasks of their consumers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::messaging::{
    BusError, DeadLetterReason, DeliveryHandler, MessageEnvelope, SubscribeOptions, TopicPattern,
};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use super::consumer::Consumer;
use super::dead_letters::DeadLetterStore;
use super::group::ConsumerGroup;
use super::options::InProcessBusOptions;
use super::routes::Routes;

/// The subscriptions of a bus, the routing table made of them, and the tasks that serve them.
#[derive(Debug)]
pub(super) struct Subscriptions {
    pub(super) options: InProcessBusOptions,
    pub(super) routes: Routes,
    pub(super) dead_letters: Arc<DeadLetterStore>,
    groups: Mutex<GroupsByName>,
    /// The workers of all consumers. Dropping the set cancels them, so they end with the last clone
    /// of the bus.
    workers: Mutex<JoinSet<()>>,
    closed: AtomicBool,
}

/// The subscriptions by name, each with the number of its consumers. Ordered, so that all
/// messages reserve capacity in the same order.
type GroupsByName = BTreeMap<Arc<str>, (Arc<ConsumerGroup>, usize)>;

impl Subscriptions {
    /// Creates the state of a bus without subscriptions.
    pub(super) fn new(options: InProcessBusOptions) -> Self {
        let dead_letters = DeadLetterStore::new(options.max_dead_letters, Arc::clone(&options.clock));
        Self {
            options,
            routes: Routes::default(),
            dead_letters: Arc::new(dead_letters),
            groups: Mutex::default(),
            workers: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Checks that a message may be published.
    pub(super) fn check(&self, envelope: &MessageEnvelope) -> Result<(), BusError> {
        if self.is_closed() {
            return Err(BusError::Closed);
        }
        let size = envelope.size();
        let limit = self.options.max_message_bytes;
        if size > limit {
            return Err(BusError::TooLarge { size, limit });
        }
        Ok(())
    }

    /// Adds a consumer to the subscription `name`, which is created if it does not exist.
    pub(super) fn join(
        &self,
        name: &str,
        pattern: &TopicPattern,
        options: SubscribeOptions,
    ) -> Result<Arc<ConsumerGroup>, BusError> {
        let mut groups = self.groups();
        // Under the lock: `end` sets the flag while it holds it, so no subscription begins after the end.
        if self.is_closed() {
            return Err(BusError::Closed);
        }
        if let Some((group, consumers)) = groups.get_mut(name) {
            if !group.can_share(pattern, &options) {
                return Err(BusError::Conflict(name.to_owned()));
            }
            *consumers += 1;
            return Ok(Arc::clone(group));
        }
        let dead_letters = Arc::clone(&self.dead_letters);
        let group = Arc::new(ConsumerGroup::new(name, pattern.clone(), options, dead_letters));
        groups.insert(name.into(), (Arc::clone(&group), 1));
        self.update_routes(&groups);
        Ok(group)
    }

    /// Removes a consumer from its subscription, which ends with its last consumer.
    pub(super) fn leave(&self, group: &Arc<ConsumerGroup>) {
        let mut groups = self.groups();
        // The name may belong to a later subscription by now, which this consumer is no part of.
        let entry = groups
            .get_mut(group.name())
            .filter(|(known, _)| Arc::ptr_eq(known, group));
        let Some((_, consumers)) = entry else {
            return;
        };
        *consumers -= 1;
        if *consumers == 0 {
            groups.remove(group.name());
            self.update_routes(&groups);
            // Ending takes other locks and logs dead letters; neither may happen under this lock.
            drop(groups);
            group.end(DeadLetterReason::Unsubscribed);
        }
    }

    fn update_routes(&self, groups: &GroupsByName) {
        self.routes
            .replace(groups.values().map(|(group, _)| Arc::clone(group)).collect());
    }

    /// Spawns the workers of a consumer. The tracker resolves when all of them have ended.
    pub(super) fn spawn(
        &self,
        workers: usize,
        handler: &Arc<dyn DeliveryHandler>,
        consumer: &Arc<Consumer>,
    ) -> TaskTracker {
        let tracker = TaskTracker::new();
        let mut tasks = self.workers();
        // A `JoinSet` keeps the result of a task until it is joined. Without this a bus with many
        // short subscriptions, such as the subscriptions of replies, would grow without bound.
        while tasks.try_join_next().is_some() {}
        for _ in 0..workers {
            let work = Arc::clone(consumer).work(Arc::clone(handler));
            tasks.spawn(tracker.track_future(work));
        }
        tracker.close();
        tracker
    }

    /// Waits until no subscription holds a message.
    ///
    /// A handler may publish to another subscription before it finishes, so each subscription may be
    /// idle when it is checked and still not all of them at once. They are idle only if nothing was
    /// pushed during a whole pass.
    pub(super) async fn until_idle(&self) {
        loop {
            let groups: Vec<_> = self.groups().values().map(|(group, _)| Arc::clone(group)).collect();
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

    /// Ends all subscriptions for good.
    pub(super) fn end(&self) {
        let mut groups = self.groups();
        self.closed.store(true, Ordering::Release);
        self.routes.replace(Vec::new());
        let ended = std::mem::take(&mut *groups);
        drop(groups);
        for (group, _) in ended.into_values() {
            group.end(DeadLetterReason::Closed);
        }
    }

    /// Takes the tasks of all workers, so that they can be cancelled and awaited without the lock.
    pub(super) fn take_workers(&self) -> JoinSet<()> {
        std::mem::take(&mut *self.workers())
    }

    /// Returns the names of the subscriptions.
    pub(super) fn names(&self) -> Vec<Arc<str>> {
        self.groups().keys().cloned().collect()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn groups(&self) -> MutexGuard<'_, GroupsByName> {
        // No code that can panic runs under the lock.
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workers(&self) -> MutexGuard<'_, JoinSet<()>> {
        // Outside a runtime, spawning panics before the set is changed.
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
