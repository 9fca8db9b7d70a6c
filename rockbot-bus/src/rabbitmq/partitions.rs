//! The partition queues of a subscription, shared fairly by the processes that consume it.
//!
//! The rule that partitions messages is the subscriber's, so an exchange cannot apply it: a
//! consistent-hash exchange needs a plugin, sees only routing key and headers, and would have to
//! be known to publishers, the original's among them. Instead the subscription's own queue has a
//! single active consumer, which sends each message on to the queue of its partition. Each
//! partition queue has a single active consumer, too, so that the order survives the end of a
//! process.
//!
//! The broker tells how many processes consume a queue. Each takes partition queues without a
//! consumer up to its fair share, and gives up the queues beyond it, after the messages that run
//! have ended.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use lapin::Channel;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use rockbot_core::messaging::BusError;
use tokio::task::JoinHandle;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::feed::{Feed, Purpose};
use super::worker::Worker;

/// Time between two looks at the consumers of the partition queues.
const INTERVAL: Duration = Duration::from_secs(1);

/// The partition queues that this process consumes.
pub(super) struct Share {
    worker: Arc<Worker>,
    held: BTreeMap<u16, HeldPartition>,
}

struct HeldPartition {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Share {
    pub(super) fn new(worker: &Arc<Worker>) -> Self {
        Self {
            worker: Arc::clone(worker),
            held: BTreeMap::new(),
        }
    }

    /// Keeps a fair share of the partition queues until the consumer stops.
    pub(super) async fn keep(mut self) {
        let stop = self.worker.stop.clone();
        while stop.run_until_cancelled(time::sleep(INTERVAL)).await.is_some() {
            let Some(balanced) = stop.run_until_cancelled(self.balance()).await else {
                return;
            };
            if let Err(error) = balanced {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, cause, "the partitions of a subscription cannot be shared; trying again");
            }
        }
    }

    /// Takes partition queues that no process consumes, or gives up the queues beyond the fair share.
    pub(super) async fn balance(&mut self) -> Result<(), BusError> {
        self.held.retain(|_, partition| !partition.task.is_finished());
        let count = self.worker.link().settings.partitions;
        let (members, consumers) = self.consumers(count).await?;
        let fair = usize::from(count).div_ceil(members.max(1));
        for (index, consumers) in (0..count).zip(consumers) {
            if consumers == 0 && self.held.len() < fair && !self.held.contains_key(&index) {
                self.take(index).await?;
            } else if consumers > 1 && RandomState::new().hash_one(index).is_multiple_of(2) {
                // Two processes took the partition at the same time: sooner or later one process gives it up.
                self.give_up(index);
            }
        }
        let surplus: Vec<_> = self.held.keys().copied().skip(fair).collect();
        surplus.into_iter().for_each(|index| self.give_up(index));
        Ok(())
    }

    async fn take(&mut self, index: u16) -> Result<(), BusError> {
        let (worker, stop) = (&self.worker, self.worker.stop.child_token());
        let session = worker.link().session(worker.link().deadline()).await?;
        let queue = worker.spec.partition(index, &worker.link().settings);
        let feed = Feed::new(worker, queue, Purpose::HandleInOrder, stop.clone());
        let open = feed.open(&session).await?;
        let task = worker.tasks.spawn(feed.run(Some(open)));
        self.held.insert(index, HeldPartition { stop, task });
        Ok(())
    }

    /// Ends the consumption of a partition queue. It is held until its running messages have ended.
    fn give_up(&self, index: u16) {
        if let Some(partition) = self.held.get(&index) {
            partition.stop.cancel();
        }
    }

    /// Returns the number of processes of the subscription, and of the consumers of each partition
    /// queue.
    async fn consumers(&self, count: u16) -> Result<(usize, Vec<u32>), BusError> {
        let spec = &self.worker.spec;
        let link = self.worker.link();
        let settings = &link.settings;
        let partitions = (0..count).map(|index| spec.partition(index, settings));
        let queues = &Vec::from_iter(std::iter::once(spec.queue(settings)).chain(partitions));
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let counting = |channel: Channel| async move {
            let mut counts = Vec::new();
            for queue in queues {
                let declared = channel.queue_declare(queue.as_str().into(), options, FieldTable::default());
                counts.push(declared.await?.consumer_count());
            }
            Ok(counts)
        };
        let doing = "cannot inspect the partitions on";
        let mut counts = link.operate(doing, link.deadline(), counting).await?;
        let members = usize::try_from(counts.remove(0)).unwrap_or(usize::MAX);
        Ok((members, counts))
    }
}
