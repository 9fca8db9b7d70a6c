//! One subscription: the messages that its consumers share, and what becomes of each.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::messaging::{
    BusError, DeadLetterReason, Delivery, Disposition, SubscribeOptions, TopicPattern, WhenFull,
};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, TryAcquireError};
use tokio::task::coop;
use tokio::time::{self, Instant};

use super::consumer::Consumer;
use super::dead_letters::DeadLetterStore;
use super::meters::{ProcessMeters, TEMPORARY};
use super::queue::{Next, Queue, QueuedMessage};

/// A subscription, shared by the bus and its workers.
#[derive(Debug)]
pub(super) struct ConsumerGroup {
    name: Arc<str>,
    pattern: TopicPattern,
    options: SubscribeOptions,
    /// One permit for each message that may still come in. A message gives its permit back when it is done.
    room: Semaphore,
    capacity: usize,
    state: Mutex<GroupState>,
    /// Wakes one worker to look at the queue; all of them when one has to stop.
    wake: Notify,
    /// Tells that every message is done.
    idle: Notify,
    dead_letters: Arc<DeadLetterStore>,
    meters: ProcessMeters,
}

#[derive(Debug, Default)]
struct GroupState {
    queue: Queue,
    /// Why nothing is taken any more.
    ended: Option<DeadLetterReason>,
}

/// What a publisher finds.
pub(super) enum Room<'a> {
    CapacityPermit(SemaphorePermit<'a>),
    Full,
    Gone,
}

impl ConsumerGroup {
    pub(super) fn new(
        name: &str,
        pattern: TopicPattern,
        options: SubscribeOptions,
        dead_letters: Arc<DeadLetterStore>,
    ) -> Self {
        let meters = match options.ephemeral {
            true => ProcessMeters::new(TEMPORARY),
            false => ProcessMeters::new(&pattern.to_string()),
        };
        let capacity = options.capacity.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            name: name.into(),
            pattern,
            options,
            room: Semaphore::new(capacity),
            capacity,
            state: Mutex::default(),
            wake: Notify::new(),
            idle: Notify::new(),
            dead_letters,
            meters,
        }
    }

    pub(super) fn meters(&self) -> &ProcessMeters {
        &self.meters
    }

    pub(super) fn is_ephemeral(&self) -> bool {
        self.options.ephemeral
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn matches(&self, topic: &str) -> bool {
        self.pattern.matches(topic)
    }

    pub(super) fn can_share(&self, pattern: &TopicPattern, options: &SubscribeOptions) -> bool {
        self.pattern == *pattern && self.options.can_share(options)
    }

    pub(super) fn rejects_when_full(&self) -> bool {
        self.options.when_full == WhenFull::Reject
    }

    pub(super) fn is_full(&self, waited: time::Duration) -> BusError {
        BusError::QueueFull {
            subscription: self.name.to_string(),
            waited,
        }
    }

    pub(super) fn try_reserve(&self) -> Room<'_> {
        match self.room.try_acquire() {
            Ok(permit) => Room::CapacityPermit(permit),
            Err(TryAcquireError::NoPermits) => Room::Full,
            Err(TryAcquireError::Closed) => Room::Gone,
        }
    }

    /// Waits for a seat. `None` when the subscription ended meanwhile.
    pub(super) async fn reserve(&self) -> Option<SemaphorePermit<'_>> {
        self.room.acquire().await.ok()
    }

    /// Takes a message in. Returns whether it did: one that comes after the end finds nobody.
    pub(super) fn push(&self, seat: SemaphorePermit<'_>, delivery: Delivery) -> bool {
        let key = self.options.partition_by.as_ref();
        let partition = key.and_then(|rule| rule.key(&delivery.envelope)).map(Arc::from);
        let item = QueuedMessage {
            delivery,
            partition,
            last_error: String::new(),
        };
        let mut state = self.lock();
        if state.ended.is_some() {
            return false;
        }
        state.queue.push(item);
        drop(state);
        seat.forget();
        self.wake.notify_one();
        true
    }

    /// Ends the subscription: its workers stop, and what it holds is given up.
    pub(super) fn end(&self, reason: DeadLetterReason) {
        let mut state = self.lock();
        let left = state.queue.drain();
        state.ended = Some(reason);
        drop(state);
        self.room.close();
        self.wake_all();
        left.into_iter().for_each(|item| self.dead_letter(item, reason));
    }

    pub(super) fn is_idle(&self) -> bool {
        self.room.available_permits() == self.capacity
    }

    /// Waits until every message is done.
    pub(super) async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// How many messages were ever taken in.
    pub(super) fn accepted(&self) -> u64 {
        self.lock().queue.accepted()
    }

    /// The next message for a consumer; `None` when the consumer has to stop.
    pub(super) async fn next(&self, consumer: &Consumer) -> Option<QueuedMessage> {
        // A queue that never runs dry must not keep other tasks from running.
        coop::consume_budget().await;
        loop {
            let woken = self.wake.notified();
            if consumer.is_stopped() {
                // Whoever woke this worker meant a message, which is now somebody else's.
                self.wake.notify_one();
                return None;
            }
            match self.take()? {
                Next::Handle(item) => return Some(item),
                Next::WaitUntil(at) => drop(time::timeout_at(at, woken).await),
                Next::Wait => woken.await,
            }
        }
    }

    fn take(&self) -> Option<Next> {
        let mut state = self.lock();
        if state.ended.is_some() {
            return None;
        }
        let mut next = state.queue.next(Instant::now);
        let has_more = state.queue.has_more();
        drop(state);
        if let Next::Handle(item) = &mut next {
            item.delivery.attempt += 1;
            if has_more {
                self.wake.notify_one();
            }
        }
        Some(next)
    }

    /// Does what the handler said.
    pub(super) fn settle(&self, mut item: QueuedMessage, verdict: Disposition) {
        let partition = item.partition.clone();
        match verdict {
            Disposition::Ack => {}
            Disposition::DeadLetter { reason } => {
                item.last_error = reason;
                self.dead_letter(item, DeadLetterReason::Rejected);
            }
            Disposition::Retry { reason } => {
                item.last_error = reason;
                match self.retry(item) {
                    Ok(()) => return,
                    Err((item, reason)) => self.dead_letter(item, reason),
                }
            }
        }
        self.finish(partition.as_ref());
    }

    /// Keeps a message whose handler was cancelled.
    pub(super) fn abandon(&self, mut item: QueuedMessage) {
        "the handler was cancelled when the bus closed".clone_into(&mut item.last_error);
        self.dead_letter(item, DeadLetterReason::Closed);
    }

    /// Lets every worker look whether it has to stop.
    pub(super) fn wake_all(&self) {
        self.wake.notify_waiters();
    }

    /// Queues a message for another attempt, or returns it with the reason why there is none.
    fn retry(&self, item: QueuedMessage) -> Result<(), (QueuedMessage, DeadLetterReason)> {
        let Some(delay) = self.options.retry.delay_after(item.delivery.attempt) else {
            return Err((item, DeadLetterReason::Exhausted));
        };
        let mut state = self.lock();
        if let Some(reason) = state.ended {
            return Err((item, reason));
        }
        state.queue.retry(item, Instant::now() + delay);
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    fn dead_letter(&self, item: QueuedMessage, reason: DeadLetterReason) {
        let is_end = matches!(reason, DeadLetterReason::Unsubscribed | DeadLetterReason::Closed);
        if !(is_end && self.options.ephemeral) {
            self.dead_letters.keep(&self.name, item, reason);
        }
    }

    fn finish(&self, partition: Option<&Arc<str>>) {
        let follows = partition.is_some() && self.lock().queue.finish(partition);
        self.room.add_permits(1);
        if follows {
            self.wake.notify_one();
        }
        if self.is_idle() {
            self.idle.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, GroupState> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
