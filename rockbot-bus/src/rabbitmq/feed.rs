//! The supervised consumption of one queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use lapin::options::{
    BasicCancelOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{Channel, Consumer};
use rockbot_core::messaging::BusError;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{self, Session};
use super::error::{provider, subscribing};
use super::job::{Job, Source};
use super::topology;
use super::worker::Worker;

/// Delays before a queue is consumed again after its channel failed: the original's. The last
/// delay is repeated.
const DELAYS: [u64; 5] = [2, 4, 8, 16, 30];

/// Maximum time for the broker to answer: a connection that is cut meanwhile may never do.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The task that takes the messages of one queue.
pub(super) struct Feed {
    worker: Arc<Worker>,
    queue: String,
    purpose: Purpose,
    /// Cancelled when this queue is given up.
    stop: CancellationToken,
    /// The tasks of messages from this queue.
    jobs: TaskTracker,
    probes: mpsc::Receiver<oneshot::Sender<usize>>,
}

/// The purpose of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To handle messages as they come.
    Handle,
    /// To handle the messages of partitions in their order.
    HandleInOrder,
    /// To spread messages over the partition queues.
    Spread,
}

/// A consumed queue on an open channel.
pub(super) struct OpenFeed {
    consumer: Consumer,
    source: Source,
}

impl Feed {
    /// Creates the feed of a queue. It ends when `stop` is cancelled.
    pub(super) fn new(worker: &Arc<Worker>, queue: String, purpose: Purpose, stop: CancellationToken) -> Self {
        let (probe, probes) = mpsc::channel(1);
        worker.add_probe(probe);
        Self {
            worker: Arc::clone(worker),
            queue,
            purpose,
            stop,
            jobs: TaskTracker::new(),
            probes,
        }
    }

    /// Declares the topology and consumes the queue.
    pub(super) async fn open(&self, session: &Session) -> Result<OpenFeed, BusError> {
        let spec = &self.worker.spec;
        let settings = &self.worker.link().settings;
        let opened = async {
            let channel = topology::declare(session.connection(), spec, settings).await?;
            let prefetch = self.worker.prefetch();
            channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
            let queue = self.queue.as_str().into();
            let options = BasicConsumeOptions::default();
            let consumer = channel.basic_consume(queue, "".into(), options, FieldTable::default());
            let consumer = consumer.await?;
            let source = Source {
                channel: Arc::new(channel),
                lost: session.lost().clone(),
            };
            Ok(OpenFeed { consumer, source })
        };
        match time::timeout(ANSWER_TIME, session.run(opened)).await {
            Ok(opened) => opened.map_err(|error| subscribing(error, &spec.name, settings)),
            Err(elapsed) => Err(provider("cannot subscribe on", settings, elapsed)),
        }
    }

    /// Takes messages until the feed is stopped, over as many connections as it takes.
    pub(super) async fn run(mut self, first: Option<OpenFeed>) {
        let mut next = first;
        loop {
            let open = match next.take() {
                Some(open) => open,
                None => match self.reopen().await {
                    Some(open) => open,
                    None => break,
                },
            };
            if self.pump(open).await {
                break;
            }
        }
        // Handlers of earlier connections may still run.
        self.end_jobs().await;
    }

    /// Consumes the queue again. Returns `None` once the feed is stopped.
    async fn reopen(&self) -> Option<OpenFeed> {
        let mut delays = DELAYS.into_iter();
        let mut delay = 0;
        loop {
            let link = self.worker.link();
            let far = Instant::now() + Duration::from_secs(3600);
            let session = self.stop.run_until_cancelled(link.session(far)).await?;
            match session {
                Ok(session) => match self.open(&session).await {
                    Ok(open) => return Some(open),
                    Err(error) => {
                        let cause = std::error::Error::source(&error).map(ToString::to_string);
                        tracing::warn!(queue = %self.queue, %error, cause, "a queue cannot be consumed; trying again");
                        if session.is_lost() {
                            // The queue is not at fault: the next connection consumes it without a delay.
                            self.stop.run_until_cancelled(session.lost().cancelled()).await?;
                            continue;
                        }
                    }
                },
                Err(BusError::Closed) => return None,
                Err(_) => continue,
            }
            delay = delays.next().unwrap_or(delay);
            let pause = time::sleep(Duration::from_secs(delay));
            self.stop.run_until_cancelled(pause).await?;
        }
    }

    /// Takes messages from an open queue. Returns `true` if the feed was stopped, `false` if the
    /// channel is lost.
    async fn pump(&mut self, mut open: OpenFeed) -> bool {
        let mut waiting = VecDeque::new();
        let permits = Arc::clone(&self.worker.permits);
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    self.finish(open, waiting).await;
                    return true;
                }
                permit = Arc::clone(&permits).acquire_owned(), if !waiting.is_empty() => {
                    if let (Ok(permit), Some(job)) = (permit, waiting.pop_front()) {
                        self.start(job, permit);
                    }
                }
                delivery = open.consumer.next() => match delivery {
                    Some(Ok(delivery)) => self.take(delivery, &open.source, &mut waiting),
                    lost => {
                        let reason = lost.map_or_else(|| "the consumer was cancelled".to_owned(), |lost| match lost {
                            Ok(_) => String::new(),
                            Err(error) => error.to_string(),
                        });
                        tracing::info!(queue = %self.queue, reason, "a queue is no longer consumed; consuming it again");
                        close(&open.source.channel).await;
                        return false;
                    }
                },
                () = open.source.lost.cancelled() => {
                    tracing::info!(queue = %self.queue, "the connection is lost; consuming the queue again");
                    return false;
                }
                Some(reply) = self.probes.recv() => {
                    let count = self.waiting(&mut open, &mut waiting).await;
                    let _ = reply.send(count);
                }
            }
        }
    }

    /// Takes a message: it waits for a permit, for its partition, or for the queue of its partition.
    fn take(&self, delivery: lapin::message::Delivery, source: &Source, waiting: &mut VecDeque<Job>) {
        let job = Job::new(&self.worker, delivery, source);
        match self.purpose {
            Purpose::Handle => waiting.push_back(job),
            Purpose::HandleInOrder => self.start_in_order(job),
            Purpose::Spread => self.start_spreading(job),
        }
    }

    fn start(&self, job: Job, permit: OwnedSemaphorePermit) {
        self.worker.spawn(&self.jobs, job.run(permit, self.stop.clone()));
    }

    fn start_in_order(&self, job: Job) {
        let worker = &self.worker;
        let rule = worker.spec.options.partition_by.as_ref();
        let key = rule.and_then(|rule| rule.key(&job.envelope));
        let turn = key.map(|key| worker.partitions.enter(&key));
        let permits = Arc::clone(&worker.permits);
        let stop = self.stop.clone();
        worker.spawn(&self.jobs, async move {
            let ready = async {
                let turn = match turn {
                    Some(turn) => Some(turn.await),
                    None => None,
                };
                (turn, permits.acquire_owned().await)
            };
            // A message that has not begun goes back when the feed stops.
            if let Some((_turn, Ok(permit))) = stop.run_until_cancelled(ready).await {
                job.run(permit, stop.clone()).await;
            }
        });
    }

    fn start_spreading(&self, job: Job) {
        let worker = &self.worker;
        let count = worker.link().settings.partitions;
        let rule = worker.spec.options.partition_by.as_ref();
        let key = rule.and_then(|rule| rule.key(&job.envelope));
        // A message without a key goes anywhere: by its id.
        let key = key.as_deref().unwrap_or_else(|| job.envelope.message_id.as_str());
        let queue = worker.spec.partition(partition(key, count), &worker.link().settings);
        let turn = worker.partitions.enter(&queue);
        let stop = self.stop.clone();
        worker.spawn(&self.jobs, async move {
            if let Some(_turn) = stop.run_until_cancelled(turn).await {
                job.forward(&queue).await;
            }
        });
    }

    /// Returns how many messages wait or run here, or wait in the queue.
    async fn waiting(&self, open: &mut OpenFeed, waiting: &mut VecDeque<Job>) -> usize {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = self.queue.as_str().into();
        let declared = open.source.channel.queue_declare(queue, options, FieldTable::default());
        let declared = time::timeout(ANSWER_TIME, connection::run(&open.source.lost, declared)).await;
        // Deliveries that the broker had sent before its answer have arrived by now.
        while let Some(Some(Ok(delivery))) = open.consumer.next().now_or_never() {
            self.take(delivery, &open.source, waiting);
        }
        let in_queue = match (declared, self.purpose) {
            (Ok(Ok(queue)), Purpose::Handle) => usize::try_from(queue.message_count()).unwrap_or(usize::MAX),
            // Another process may be the active consumer.
            _ => 0,
        };
        self.worker.held.load(Ordering::Acquire).saturating_add(in_queue)
    }

    /// Gives the queue up: returns the jobs that have not begun, and waits for the running ones.
    async fn finish(&self, mut open: OpenFeed, waiting: VecDeque<Job>) {
        // The messages of a partition must not go to another process while an earlier message still runs
        // here.
        if self.purpose == Purpose::Handle {
            let tag = open.consumer.tag();
            let cancelled = open.source.channel.basic_cancel(tag, BasicCancelOptions::default());
            let _ = time::timeout(ANSWER_TIME, connection::run(&open.source.lost, cancelled)).await;
            let returning = async {
                for job in waiting {
                    job.give_back(&self.queue).await;
                }
                while let Some(Some(Ok(delivery))) = open.consumer.next().now_or_never() {
                    let job = Job::new(&self.worker, delivery, &open.source);
                    job.give_back(&self.queue).await;
                }
            };
            // The rest goes back with the channel.
            let _ = time::timeout(ANSWER_TIME, returning).await;
        }
        self.end_jobs().await;
        while let Some(Some(Ok(delivery))) = open.consumer.next().now_or_never() {
            drop(Job::new(&self.worker, delivery, &open.source));
        }
        if self.worker.spec.options.ephemeral {
            let options = QueueDeleteOptions::default();
            // Other consumers of the name in this process still use it.
            let options = QueueDeleteOptions {
                if_unused: true,
                ..options
            };
            let deleted = open.source.channel.queue_delete(self.queue.as_str().into(), options);
            let _ = time::timeout(ANSWER_TIME, connection::run(&open.source.lost, deleted)).await;
        }
        close(&open.source.channel).await;
    }

    async fn end_jobs(&self) {
        self.jobs.close();
        self.jobs.wait().await;
    }
}

/// Closes a channel. Its messages go back to the queue.
async fn close(channel: &Channel) {
    if channel.status().connected() {
        let _ = time::timeout(Duration::from_secs(1), channel.close(200, "done".into())).await;
    }
}

/// Returns the partition of a key, the same in every process and version: the FNV-1a hash of the
/// key.
fn partition(key: &str, count: u16) -> u16 {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    u16::try_from(hash % u64::from(count.max(1))).unwrap_or_default()
}
