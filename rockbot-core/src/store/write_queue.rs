//! Writing without waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::StoreError;
use crate::Principal;

/// Takes entries that nobody waits for, such as feedback, to be written one after the other by a task of the host.
///
/// It holds a limited number of entries. What comes when it is full, or after the task has ended, is dropped and
/// counted: who leaves signs of quality behind should not be held up by a slow disk. What is in it when the process is
/// killed is lost.
///
/// ```
/// use rockbot_core::store::{FeedbackStore, InMemoryFeedbackStore, WriteQueue};
/// # use rockbot_core::store::{FeedbackEntry, FeedbackSignal};
/// # use rockbot_core::{Principal, Timestamp};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::BoxError> {
/// # let entry = FeedbackEntry {
/// #     id: "f1".into(),
/// #     session_id: "s".into(),
/// #     signal_type: FeedbackSignal::UserThumbsUp,
/// #     summary: "thanks".into(),
/// #     detail: None,
/// #     timestamp: Timestamp::from_millis(1),
/// # };
/// let store = Arc::new(InMemoryFeedbackStore::new());
/// let writer = store.clone();
/// let (queue, task) = WriteQueue::new(100, move |principal, entry| {
///     let writer = writer.clone();
///     async move { writer.append(&principal, entry).await }
/// });
/// let task = tokio::spawn(task);
/// queue.push(Principal::default(), entry);
/// drop(queue);
/// task.await?; // it ends when everything is written and no queue is left
/// assert_eq!(store.query_recent(&Principal::default(), Timestamp::default(), 10).await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WriteQueue<T> {
    entries: mpsc::Sender<(Principal, T)>,
    dropped: Arc<AtomicU64>,
}

impl<T> Clone for WriteQueue<T> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            dropped: self.dropped.clone(),
        }
    }
}

impl<T> WriteQueue<T> {
    /// A queue of at most `capacity` entries (at least 1), and the task that writes them with `write`. Entries that
    /// cannot be written are dropped and counted, too. The task ends when all copies of the queue are gone and
    /// everything is written.
    pub fn new<F: Future<Output = Result<(), StoreError>>>(
        capacity: usize,
        write: impl Fn(Principal, T) -> F,
    ) -> (Self, impl Future<Output = ()>) {
        let (entries, mut receiver) = mpsc::channel(capacity.max(1));
        let dropped = Arc::new(AtomicU64::new(0));
        let queue = Self {
            entries,
            dropped: dropped.clone(),
        };
        let task = async move {
            while let Some((principal, entry)) = receiver.recv().await {
                if write(principal, entry).await.is_err() {
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        (queue, task)
    }

    /// Leaves an entry to be written. Returns whether there was room.
    pub fn push(&self, principal: Principal, entry: T) -> bool {
        let is_taken = self.entries.try_send((principal, entry)).is_ok();
        self.dropped.fetch_add(u64::from(!is_taken), Ordering::Relaxed);
        is_taken
    }

    /// How many entries were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn writes_in_order_and_counts_what_it_drops() {
        let written = Mutex::new(Vec::new());
        let write = async |_, entry: u32| {
            written.lock().unwrap().push(entry);
            match entry {
                2 => Err(StoreError {
                    context: "no".into(),
                    source: "no".into(),
                }),
                _ => Ok(()),
            }
        };
        let (queue, task) = WriteQueue::new(3, write);
        let other = queue.clone();
        let taken: Vec<_> = (1..=5).map(|entry| queue.push(Principal::default(), entry)).collect();
        assert_eq!((taken, queue.dropped()), (vec![true, true, true, false, false], 2));
        drop(queue);
        let ends = async {
            task.await;
        };
        let pushes = async {
            tokio::task::yield_now().await;
            assert!(other.push(Principal::default(), 6));
            assert_eq!(other.dropped(), 3);
            drop(other);
        };
        tokio::join!(ends, pushes);
        assert_eq!(*written.lock().unwrap(), [1, 2, 3, 6]);
    }
}
