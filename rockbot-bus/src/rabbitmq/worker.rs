//! What the queues of one consumer share: its handler, its limits, and the messages that it holds.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::messaging::DeliveryHandler;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Link;
use super::lanes::Lanes;
use super::publisher::Publisher;
use super::settled::Settled;
use super::topology::SubscriptionSpec;

/// A consumer of a subscription.
pub(super) struct Worker {
    pub(super) spec: SubscriptionSpec,
    pub(super) publisher: Publisher,
    pub(super) handler: Arc<dyn DeliveryHandler>,
    /// The concurrency of the consumer, over all its queues and connections.
    pub(super) permits: Arc<Semaphore>,
    /// The order within partitions.
    pub(super) partitions: Lanes,
    /// The order of copies of one message.
    pub(super) in_flight: Lanes,
    pub(super) settled: Settled,
    /// Number of messages that are held and not settled.
    pub(super) held: AtomicUsize,
    /// Number of messages that were ever taken.
    pub(super) taken: AtomicUsize,
    /// Number of messages that went back to the broker.
    pub(super) unfinished: AtomicUsize,
    /// Cancelled when no further message is taken.
    pub(super) stop: CancellationToken,
    /// Cancelled when running handlers must end.
    pub(super) abort: CancellationToken,
    /// The tasks of queues and handlers.
    pub(super) tasks: TaskTracker,
    probes: Mutex<Vec<Probe>>,
}

/// A way to ask a queue's task for the number of messages that wait: held here, or in the queue.
pub(super) type Probe = mpsc::Sender<oneshot::Sender<usize>>;

impl Worker {
    pub(super) fn new(link: Arc<Link>, spec: SubscriptionSpec, handler: Arc<dyn DeliveryHandler>) -> Self {
        let concurrency = spec.options.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(concurrency)),
            stop: link.closed.child_token(),
            abort: link.closed.child_token(),
            publisher: Publisher { link },
            spec,
            handler,
            partitions: Lanes::default(),
            in_flight: Lanes::default(),
            settled: Settled::default(),
            held: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(0),
            tasks: TaskTracker::new(),
            probes: Mutex::default(),
        }
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.publisher.link
    }

    /// Returns the number of messages that the broker hands over in advance, per queue.
    pub(super) fn prefetch(&self) -> u16 {
        let (settings, options) = (&self.link().settings, &self.spec.options);
        let capacity = options.capacity.max(1);
        let wanted = match self.spec.is_partitioned() {
            // The messages of a partition wait for one that is retried; those of others must get past them.
            true => capacity.div_ceil(settings.partitions.into()),
            false => options.concurrency.saturating_mul(2).min(capacity),
        };
        let least = usize::from(settings.prefetch_count.max(1)).min(capacity);
        u16::try_from(wanted.max(least)).unwrap_or(u16::MAX)
    }

    /// Adds the probe of a queue's task, and forgets those of ended tasks.
    pub(super) fn add_probe(&self, probe: Probe) {
        let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        probes.retain(|probe| !probe.is_closed());
        probes.push(probe);
    }

    /// Returns `true` if no queue of this consumer has a message for it.
    pub(super) async fn is_idle(&self) -> bool {
        let probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for probe in probes {
            let (reply, waiting) = oneshot::channel();
            // A task that has ended has no messages.
            if probe.send(reply).await.is_ok() && waiting.await.is_ok_and(|waiting| waiting > 0) {
                return false;
            }
        }
        true
    }
}
