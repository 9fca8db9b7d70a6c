//! The pure queue of a subscription: the next message, and the messages that wait for a retry or
//! for their partition.
//!
//! It has no locks, no tasks and no clock of its own, so that its order is tested without a
//! runtime.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use rockbot_core::messaging::Delivery;
use tokio::time::Instant;

/// A message in a queue.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    /// The delivery that the handler gets. `attempt` counts the deliveries so far.
    pub(super) delivery: Delivery,
    pub(super) partition: Option<Arc<str>>,
    /// The reason of the last failure; empty before the first failure.
    pub(super) last_error: String,
}

/// The messages of a subscription that are not being handled. Its capacity is bounded by the
/// permits of the group.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    ready: VecDeque<QueuedMessage>,
    /// Failed messages by the instant of their next attempt; the number keeps equal instants apart,
    /// in order.
    delayed: BTreeMap<(Instant, u64), QueuedMessage>,
    /// The partitions with a message that is ready, delayed or being handled, and the messages that
    /// wait behind it.
    partitions: HashMap<Arc<str>, VecDeque<QueuedMessage>>,
    accepted: u64,
    retried: u64,
}

/// The next action of a worker.
#[derive(Debug)]
pub(super) enum Next {
    Handle(QueuedMessage),
    /// Nothing is ready; the first retry is due at this instant.
    WaitUntil(Instant),
    /// Nothing is ready or delayed.
    Wait,
}

impl WorkQueue {
    /// Appends a message, after the messages of its partition that are not settled yet.
    pub(super) fn push(&mut self, item: QueuedMessage) {
        self.accepted += 1;
        let Some(key) = &item.partition else {
            self.ready.push_back(item);
            return;
        };
        if let Some(waiting) = self.partitions.get_mut(key) {
            waiting.push_back(item);
        } else {
            self.partitions.insert(Arc::clone(key), VecDeque::new());
            self.ready.push_back(item);
        }
    }

    /// Removes and returns the message to handle now. `now` is only called while a message is
    /// delayed, since reading the clock for every message is measurable.
    pub(super) fn next(&mut self, now: impl FnOnce() -> Instant) -> Next {
        if let Some(entry) = self.delayed.first_entry() {
            // A retry that is due goes first: it is older than the messages that are ready, and
            // waited for its back-off already.
            let at = entry.key().0;
            if at <= now() {
                return Next::Handle(entry.remove());
            }
            return self.ready.pop_front().map_or(Next::WaitUntil(at), Next::Handle);
        }
        self.ready.pop_front().map_or(Next::Wait, Next::Handle)
    }

    /// Puts back a failed message until `at`. Its partition waits for it, so that its order is kept.
    pub(super) fn retry(&mut self, item: QueuedMessage, at: Instant) {
        self.retried += 1;
        self.delayed.insert((at, self.retried), item);
    }

    /// Makes the next message of a partition ready after the message before it was settled. Returns
    /// `true` if there was a next message, and removes the partition otherwise, so that partitions
    /// without messages take no memory.
    pub(super) fn finish(&mut self, partition: Option<&Arc<str>>) -> bool {
        let Some(key) = partition else {
            return false;
        };
        let Some(waiting) = self.partitions.get_mut(key) else {
            return false;
        };
        if let Some(next) = waiting.pop_front() {
            self.ready.push_back(next);
            return true;
        }
        self.partitions.remove(key);
        false
    }

    /// Removes and returns all messages: the ready messages, then the delayed messages, then the
    /// messages that wait for their partition.
    pub(super) fn drain(&mut self) -> Vec<QueuedMessage> {
        let waiting = std::mem::take(&mut self.partitions).into_values().flatten();
        let delayed = std::mem::take(&mut self.delayed).into_values();
        self.ready.drain(..).chain(delayed).chain(waiting).collect()
    }

    /// Reports whether another worker has something to do: a message to take, or a retry to wait for.
    pub(super) fn has_more(&self) -> bool {
        !self.ready.is_empty() || !self.delayed.is_empty()
    }

    /// Returns the number of messages that were ever pushed.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use rockbot_core::context::Trust;
    use rockbot_core::messaging::MessageEnvelope;

    use super::*;

    fn item(number: usize, partition: Option<u8>) -> QueuedMessage {
        let envelope = MessageEnvelope::new("t", "").with_id(number.to_string());
        QueuedMessage {
            delivery: Delivery::new("t", Arc::new(envelope)).with_trust(Trust::User),
            partition: partition.map(|key| key.to_string().into()),
            last_error: String::new(),
        }
    }

    fn number(item: &QueuedMessage) -> usize {
        item.delivery.envelope.message_id.as_str().parse().unwrap()
    }

    proptest! {
        /// In whatever order consumers finish, no message is lost or duplicated, two of one partition are
        /// never handled at once, and each partition is handled in order.
        #[test]
        fn partitions_stay_in_order(
            partitions in proptest::collection::vec(proptest::option::of(0u8..3), 0..30),
            moves in proptest::collection::vec((0usize..4, any::<bool>()), 0..200),
        ) {
            let start = Instant::now();
            let mut queue = WorkQueue::default();
            for (number, partition) in partitions.iter().enumerate() {
                queue.push(item(number, *partition));
            }
            let mut handled = Vec::new();
            let mut done = Vec::new();
            let mut moves = moves.into_iter();
            let mut clock = 0;
            while done.len() < partitions.len() {
                clock += 1;
                let now = start + Duration::from_secs(clock);
                let (which, fails) = moves.next().unwrap_or_default();
                if which < handled.len() {
                    let item: QueuedMessage = handled.swap_remove(which);
                    if fails {
                        queue.retry(item, now + Duration::from_secs(5));
                    } else {
                        queue.finish(item.partition.as_ref());
                        done.push(number(&item));
                    }
                } else if let Next::Handle(item) = queue.next(|| now) {
                    let same = |other: &QueuedMessage| item.partition.is_some() && other.partition == item.partition;
                    prop_assert!(!handled.iter().any(same));
                    handled.push(item);
                }
            }
            for key in 0..3 {
                let of_key = |number: &&usize| partitions[**number] == Some(key);
                prop_assert!(done.iter().filter(of_key).is_sorted());
            }
            done.sort_unstable();
            prop_assert_eq!(done, (0..partitions.len()).collect::<Vec<_>>());
            prop_assert!(queue.drain().is_empty());
        }
    }

    #[test]
    fn draining_returns_what_is_ready_delayed_and_waiting() {
        let mut queue = WorkQueue::default();
        for (number, partition) in [None, Some(1), Some(1), None].into_iter().enumerate() {
            queue.push(item(number, partition));
        }
        let Next::Handle(first) = queue.next(Instant::now) else {
            panic!("a message is ready");
        };
        queue.retry(first, Instant::now() + Duration::from_secs(1));
        let drained: Vec<_> = queue.drain().iter().map(number).collect();
        assert_eq!(drained, [1, 3, 0, 2]);
    }
}
