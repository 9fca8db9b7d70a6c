//! The state that the queues of one consumer share: its handler, its limits, and the messages
//! that it holds.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use rockbot_core::messaging::{Delivery, DeliveryHandler, Disposition};
use rockbot_core::support::caught;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::SubscriptionSpec;
use super::lanes::Lanes;
use super::settled::Settled;

/// A consumer of a subscription, which moves messages elsewhere through a publisher `P`.
pub(crate) struct Worker<P> {
    pub(crate) spec: SubscriptionSpec,
    pub(crate) publisher: P,
    pub(crate) handler: Arc<dyn DeliveryHandler>,
    /// The concurrency of the consumer, over all its queues and connections.
    pub(crate) permits: Arc<Semaphore>,
    /// The order within partitions.
    pub(crate) partitions: Lanes,
    /// The order of copies of one message.
    pub(crate) in_flight: Lanes,
    pub(crate) settled: Settled,
    /// Number of messages that are held and not settled.
    pub(crate) held: AtomicUsize,
    /// Number of messages that were ever taken.
    pub(crate) taken: AtomicUsize,
    /// Number of messages that went back to the broker.
    pub(crate) unfinished: AtomicUsize,
    /// Cancelled when no further message is taken.
    pub(crate) stop: CancellationToken,
    /// Cancelled when running handlers must end.
    pub(crate) abort: CancellationToken,
    /// The tasks of queues and handlers.
    pub(crate) tasks: TaskTracker,
    probes: Mutex<Vec<Probe>>,
}

/// A way to ask a queue's task for the number of messages that wait: held here, or in the queue.
pub(crate) type Probe = mpsc::Sender<oneshot::Sender<usize>>;

impl<P> Worker<P> {
    /// Creates a consumer that ends when `closed` is cancelled.
    pub(crate) fn new(
        publisher: P,
        closed: &CancellationToken,
        spec: SubscriptionSpec,
        handler: Arc<dyn DeliveryHandler>,
    ) -> Self {
        let concurrency = spec.options.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(concurrency)),
            stop: closed.child_token(),
            abort: closed.child_token(),
            publisher,
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

    /// Hands a delivery to the handler. A panic is a failure, since it must not end the consumer.
    pub(crate) async fn handle(&self, delivery: Delivery) -> Disposition {
        let handling = AssertUnwindSafe(self.handler.handle(delivery)).catch_unwind();
        caught(handling.await).unwrap_or_else(|panic| Disposition::retry(format_args!("the handler panicked: {panic}")))
    }

    /// Runs the work on a message until it ends or must end.
    pub(crate) fn spawn(&self, jobs: &TaskTracker, job: impl Future<Output = ()> + Send + 'static) {
        let abort = self.abort.clone();
        // Each wrapper below would copy it.
        let job = Box::pin(job);
        let task = jobs.track_future(async move {
            abort.run_until_cancelled(job).await;
        });
        self.tasks.spawn(task);
    }

    /// Adds the probe of a queue's task, and forgets the probes of ended tasks.
    pub(crate) fn add_probe(&self, probe: Probe) {
        let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        probes.retain(|probe| !probe.is_closed());
        probes.push(probe);
    }

    /// Returns `true` if no queue of this consumer has a message for it.
    pub(crate) async fn is_idle(&self) -> bool {
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
