//! A subscription: the queue that its consumers share, its capacity, and the verdict on each
//! message.
//!
//! A message holds one permit of the capacity from the moment it is pushed until it is settled
//! for good: while it is queued, handled, or waiting for a retry. So the capacity bounds all that
//! a subscription holds in memory, and a slow handler puts backpressure on its publishers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::messaging::{
    BusError, DeadLetterReason, Delivery, Disposition, SubscribeOptions, TopicPattern, WhenFull,
};
use rockbot_core::support::deadline_after;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, TryAcquireError};
use tokio::task::coop;
use tokio::time::{self, Instant};

use super::dead_letters::DeadLetterStore;
use super::meters::{ProcessMeters, TEMPORARY};
use super::queue::{Next, QueuedMessage, WorkQueue};

/// A subscription, shared by the bus and the workers of its consumers.
#[derive(Debug)]
pub(super) struct ConsumerGroup {
    name: Arc<str>,
    pattern: TopicPattern,
    options: SubscribeOptions,
    /// One permit for each message that may still be pushed. Its waiters are served in FIFO order, so
    /// no publisher starves.
    room: Semaphore,
    capacity: usize,
    state: Mutex<GroupState>,
    /// Wakes one worker per message that became ready, and all workers when a worker has to stop.
    wake: Notify,
    /// Notified when the last message is settled.
    idle: Notify,
    dead_letters: Arc<DeadLetterStore>,
    meters: ProcessMeters,
}

#[derive(Debug, Default)]
struct GroupState {
    queue: WorkQueue,
    /// The reason for the end of the subscription. Nothing is pushed or taken after it.
    ended: Option<DeadLetterReason>,
}

/// The result of reserving capacity without waiting.
pub(super) enum TryReserve<'a> {
    Reserved(SemaphorePermit<'a>),
    Full,
    Ended,
}

impl ConsumerGroup {
    /// Creates a subscription without consumers.
    pub(super) fn new(
        name: &str,
        pattern: TopicPattern,
        options: SubscribeOptions,
        dead_letters: Arc<DeadLetterStore>,
    ) -> Self {
        let meters = if options.ephemeral {
            ProcessMeters::new(TEMPORARY)
        } else {
            ProcessMeters::new(&pattern.to_string())
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

    /// Reports whether a consumer with this pattern and these options may join the group.
    pub(super) fn can_share(&self, pattern: &TopicPattern, options: &SubscribeOptions) -> bool {
        self.pattern == *pattern && self.options.can_share(options)
    }

    pub(super) fn rejects_when_full(&self) -> bool {
        self.options.when_full == WhenFull::Reject
    }

    /// Creates the error of a publisher that `waited` for capacity in vain.
    pub(super) fn queue_full(&self, waited: time::Duration) -> BusError {
        BusError::QueueFull {
            subscription: self.name.to_string(),
            waited,
        }
    }

    /// Reserves capacity for one message without waiting.
    pub(super) fn try_reserve(&self) -> TryReserve<'_> {
        match self.room.try_acquire() {
            Ok(permit) => TryReserve::Reserved(permit),
            Err(TryAcquireError::NoPermits) => TryReserve::Full,
            Err(TryAcquireError::Closed) => TryReserve::Ended,
        }
    }

    /// Waits for capacity for one message. Returns `None` if the subscription ended meanwhile.
    pub(super) async fn reserve(&self) -> Option<SemaphorePermit<'_>> {
        self.room.acquire().await.ok()
    }

    /// Pushes a message that has a permit. Returns `false`, and drops the message, if the
    /// subscription has ended.
    pub(super) fn push(&self, permit: SemaphorePermit<'_>, delivery: Delivery) -> bool {
        let key = self.options.partition_by.as_ref();
        let partition = key.and_then(|rule| rule.key(&delivery.envelope)).map(Arc::from);
        let message = QueuedMessage {
            delivery,
            partition,
            last_error: String::new(),
        };
        let mut state = self.lock();
        // Checked under the lock that `end` holds while it drains: a message is either drained or
        // refused, never left in a queue without workers.
        if state.ended.is_some() {
            return false;
        }
        state.queue.push(message);
        drop(state);
        // From here on the permit belongs to the message; `finish` adds it back.
        permit.forget();
        self.wake.notify_one();
        true
    }

    /// Ends the subscription: its workers stop, and the messages that it still holds become dead
    /// letters.
    pub(super) fn end(&self, reason: DeadLetterReason) {
        let mut state = self.lock();
        let left = state.queue.drain();
        state.ended = Some(reason);
        drop(state);
        // Closing the semaphore ends the wait of publishers, who then leave this subscription out.
        self.room.close();
        self.wake_all();
        // The drained messages are settled: a bus that closes must not wait for them.
        self.room.add_permits(left.len());
        left.into_iter().for_each(|message| self.dead_letter(message, reason));
        if self.is_idle() {
            self.idle.notify_waiters();
        }
    }

    /// Reports whether the subscription holds no message.
    pub(super) fn is_idle(&self) -> bool {
        self.room.available_permits() == self.capacity
    }

    /// Waits until the subscription holds no message.
    pub(super) async fn until_idle(&self) {
        loop {
            // Created before the check: a notification between the check and the wait is not lost.
            let idle = self.idle.notified();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Returns the number of messages that were ever pushed.
    pub(super) fn accepted(&self) -> u64 {
        self.lock().queue.accepted()
    }

    /// Waits for the next message. Returns `None` when `is_stopped` returns `true` or the
    /// subscription has ended.
    pub(super) async fn next(&self, is_stopped: impl Fn() -> bool) -> Option<QueuedMessage> {
        // Taking a ready message never yields by itself; without this a busy queue would starve the
        // other tasks of the thread.
        coop::consume_budget().await;
        loop {
            // Created before the flags are read, so that no wake-up between the check and the wait is lost.
            let woken = self.wake.notified();
            if is_stopped() {
                // This worker may have consumed the wake-up of a message that it will not take; pass it on.
                self.wake.notify_one();
                return None;
            }
            match self.take()? {
                Next::Handle(message) => return Some(message),
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
        if let Next::Handle(message) = &mut next {
            message.delivery.attempt += 1;
            // `Notify` stores one permit at most, so several pushes in a row may have woken one
            // worker only. Each worker that takes a message wakes the next worker while there is
            // more to do, or a retry to wait for.
            if has_more {
                self.wake.notify_one();
            }
        }
        Some(next)
    }

    /// Applies the verdict on a message.
    pub(super) fn settle(&self, mut message: QueuedMessage, verdict: Disposition) {
        let partition = message.partition.clone();
        match verdict {
            Disposition::Ack => {}
            Disposition::DeadLetter { reason } => {
                message.last_error = reason;
                self.dead_letter(message, DeadLetterReason::Rejected);
            }
            Disposition::Retry { reason } => {
                message.last_error = reason;
                match self.retry(message) {
                    // The message keeps its permit and its partition.
                    Ok(()) => return,
                    Err((message, reason)) => self.dead_letter(message, reason),
                }
            }
        }
        self.finish(partition.as_ref());
    }

    /// Makes a dead letter of a message whose handler was cancelled.
    pub(super) fn abandon(&self, mut message: QueuedMessage) {
        "the handler was cancelled when the bus closed".clone_into(&mut message.last_error);
        self.dead_letter(message, DeadLetterReason::Closed);
    }

    /// Wakes all workers, so that each checks whether it has to stop.
    pub(super) fn wake_all(&self) {
        self.wake.notify_waiters();
    }

    /// Queues a message for another attempt after a back-off, or returns it with the reason why
    /// there is no further attempt.
    fn retry(&self, message: QueuedMessage) -> Result<(), (QueuedMessage, DeadLetterReason)> {
        let Some(delay) = self.options.retry.delay_after(message.delivery.attempt) else {
            return Err((message, DeadLetterReason::Exhausted));
        };
        let mut state = self.lock();
        if let Some(reason) = state.ended {
            return Err((message, reason));
        }
        state.queue.retry(message, deadline_after(Instant::now(), delay));
        drop(state);
        // A worker that waits without a deadline, or with a later deadline, has to take the new
        // deadline into account.
        self.wake.notify_one();
        Ok(())
    }

    fn dead_letter(&self, message: QueuedMessage, reason: DeadLetterReason) {
        // An ephemeral subscription, such as the subscription of a reply, ends with messages in it
        // as a matter of course.
        let is_end = matches!(reason, DeadLetterReason::Unsubscribed | DeadLetterReason::Closed);
        if !(is_end && self.options.ephemeral) {
            self.dead_letters.keep(&self.name, message, reason);
        }
    }

    /// Releases the partition and the permit of a message that is settled for good.
    fn finish(&self, partition: Option<&Arc<str>>) {
        let has_successor = partition.is_some() && self.lock().queue.finish(partition);
        self.room.add_permits(1);
        if has_successor {
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
