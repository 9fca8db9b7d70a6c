//! The supervised consumption of one topic.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use pulsar::consumer::{DeadLetterPolicy, InitialPosition};
use pulsar::{ConsumerBuilder, ConsumerOptions, SubType, TokioExecutor};
use rockbot_core::messaging::BusError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::{Answer, answer, provider};
use super::job::{Ack, Job, Purpose};
use super::link::{OPERATION_TIME, OpenConsumer, Session};
use super::worker::Worker;

/// Delays before a topic is consumed again after its consumer failed; the last delay is repeated.
const DELAYS: [Duration; 5] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(16),
    Duration::from_secs(30),
];

/// Time without a message after which a topic counts as empty: the broker does not tell how many
/// messages wait.
const QUIET: Duration = Duration::from_millis(200);
/// Maximum time for a consumer to end in good order.
const GOODBYE_TIME: Duration = Duration::from_secs(1);
/// Number of acknowledgements that wait for the task of a topic.
const MAX_ACKS: usize = 64;

/// The task that takes the messages of one topic.
pub(super) struct Feed {
    worker: Arc<Worker>,
    purpose: Purpose,
    topic: String,
    stop: CancellationToken,
    /// The tasks of messages from this topic.
    jobs: TaskTracker,
    /// Number of messages of this topic that are held and not settled.
    held: Arc<AtomicUsize>,
    probes: mpsc::Receiver<oneshot::Sender<usize>>,
    acks: mpsc::Receiver<Ack>,
    acknowledger: mpsc::Sender<Ack>,
    last_arrival: Instant,
}

/// A consumed topic of a session.
pub(super) struct OpenFeed {
    consumer: OpenConsumer,
    session: Arc<Session>,
}

impl Feed {
    /// Creates the feed of a topic of Pulsar.
    pub(super) fn new(worker: &Arc<Worker>, topic: String, purpose: Purpose) -> Self {
        let (probe, probes) = mpsc::channel(1);
        worker.add_probe(probe);
        let (acknowledger, acks) = mpsc::channel(MAX_ACKS);
        Self {
            stop: worker.stop.clone(),
            worker: Arc::clone(worker),
            purpose,
            topic,
            jobs: TaskTracker::new(),
            held: Arc::default(),
            probes,
            acks,
            acknowledger,
            last_arrival: Instant::now(),
        }
    }

    /// Subscribes to the topic.
    pub(super) async fn open(&self, session: &Arc<Session>) -> Result<OpenFeed, BusError> {
        let doing = "cannot subscribe on";
        let settings = &self.worker.publisher.link.settings;
        match time::timeout(OPERATION_TIME, Box::pin(self.subscribe(session)?.build())).await {
            Ok(Ok(consumer)) => Ok(OpenFeed {
                consumer,
                session: Arc::clone(session),
            }),
            Ok(Err(error)) => match answer(&error) {
                Some(Answer::Busy) => Err(BusError::Conflict(self.worker.spec.name.clone())),
                Some(_) => Err(provider(doing, settings, error)),
                None => {
                    session.give_up(&error);
                    Err(provider(doing, settings, error))
                }
            },
            Err(elapsed) => {
                session.give_up(&elapsed);
                Err(provider(doing, settings, elapsed))
            }
        }
    }

    fn subscribe(&self, session: &Session) -> Result<ConsumerBuilder<TokioExecutor>, BusError> {
        let prefetch = u32::try_from(self.worker.prefetch()).unwrap_or(u32::MAX);
        // Messages that were published before this subscription existed are not for it; retries are
        // always for it.
        let from = match self.purpose {
            Purpose::Handle => InitialPosition::Latest,
            Purpose::Retry => InitialPosition::Earliest,
        };
        let options = ConsumerOptions::default()
            .durable(!self.worker.spec.options.ephemeral)
            .with_receiver_queue_size(prefetch)
            .with_initial_position(from);
        let builder = session.client.consumer().with_topic(&self.topic);
        let builder = builder
            .with_subscription(self.worker.subscription())
            .with_subscription_type(self.kind())
            .with_batch_size(prefetch)
            .with_options(options);
        if self.worker.retries_here() {
            return Ok(builder);
        }
        // The client does not show how often a message was delivered, but moves a message that was
        // delivered before elsewhere.
        Ok(builder.with_dead_letter_policy(DeadLetterPolicy {
            max_redeliver_count: 1,
            dead_letter_topic: self.worker.retry_topic()?,
        }))
    }

    /// Takes messages until the feed is stopped, over as many connections as it takes.
    pub(super) async fn run(mut self, first: OpenFeed) {
        let mut next = Some(first);
        while let Some(open) = next {
            let is_stopped = self.pump(open).await;
            next = if is_stopped { None } else { self.reopen().await };
        }
        // Handlers of earlier connections may still run.
        self.end_jobs().await;
    }

    /// Subscribes again. Returns `None` once the feed is stopped.
    async fn reopen(&mut self) -> Option<OpenFeed> {
        let mut delays = DELAYS.into_iter();
        let mut delay = Duration::ZERO;
        loop {
            let far = Instant::now() + Duration::from_secs(3600);
            let link = &self.worker.publisher.link;
            match self.stop.run_until_cancelled(link.session(far)).await? {
                Ok(session) => match self.open(&session).await {
                    Ok(open) => return Some(open),
                    Err(error) => {
                        let cause = std::error::Error::source(&error).map(ToString::to_string);
                        tracing::warn!(topic = %self.topic, %error, cause, "a topic cannot be consumed; trying again");
                    }
                },
                Err(BusError::Closed) => return None,
                Err(_) => {}
            }
            delay = delays.next().unwrap_or(delay);
            self.stop.run_until_cancelled(time::sleep(delay)).await?;
        }
    }

    /// Takes messages from an open topic. Returns `true` if the feed was stopped, `false` if the
    /// consumer is lost.
    async fn pump(&mut self, mut open: OpenFeed) -> bool {
        let permits = Arc::clone(&self.worker.permits);
        let stop = self.stop.clone();
        let limit = self.worker.spec.options.capacity.max(1);
        let mut waiting: VecDeque<Job> = VecDeque::new();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    drop(waiting);
                    self.finish(open).await;
                    return true;
                }
                () = open.session.lost.cancelled() => {
                    tracing::info!(topic = %self.topic, "the connection is lost; consuming the topic again");
                    return false;
                }
                Some(ack) = self.acks.recv() => acknowledge(&mut open.consumer, ack).await,
                permit = Arc::clone(&permits).acquire_owned(), if !waiting.is_empty() => {
                    if let (Ok(permit), Some(job)) = (permit, waiting.pop_front()) {
                        self.worker.spawn(&self.jobs, job.run(permit, stop.clone()));
                    }
                }
                // A message that ends is acknowledged above, so this is looked at again.
                message = open.consumer.next(), if self.held.load(Ordering::Acquire) < limit => match message {
                    Some(Ok(message)) => {
                        self.last_arrival = Instant::now();
                        let job = Job::new(&self.worker, self.purpose, message, &self.held, &self.acknowledger);
                        self.take(job, &mut waiting);
                    }
                    lost => {
                        let reason = lost.and_then(Result::err).map(|error| error.to_string());
                        tracing::info!(topic = %self.topic, reason, "a topic is no longer consumed; consuming it again");
                        return false;
                    }
                },
                Some(reply) = self.probes.recv() => drop(reply.send(self.waiting())),
            }
        }
    }

    /// Returns how many messages are held or may still come.
    fn waiting(&self) -> usize {
        let held = self.held.load(Ordering::Acquire);
        if self.last_arrival.elapsed() >= QUIET {
            held
        } else {
            held.max(1)
        }
    }

    /// Lets a message wait for a permit, for its partition, or for its time.
    fn take(&self, job: Job, waiting: &mut VecDeque<Job>) {
        let worker = &self.worker;
        let rule = worker
            .spec
            .options
            .partition_by
            .as_ref()
            .filter(|_| worker.spec.is_partitioned());
        let turn = rule
            .and_then(|rule| rule.key(&job.envelope))
            .map(|key| worker.partitions.enter(&key));
        if turn.is_none() && job.is_due() {
            return waiting.push_back(job);
        }
        let permits = Arc::clone(&worker.permits);
        let stop = self.stop.clone();
        worker.spawn(&self.jobs, async move {
            let ready = async {
                job.until_due().await;
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

    /// Waits for the running jobs, and gives the topic up. The broker delivers unacknowledged
    /// messages again.
    async fn finish(&mut self, mut open: OpenFeed) {
        self.jobs.close();
        let jobs = self.jobs.clone();
        let mut ended = std::pin::pin!(jobs.wait());
        loop {
            tokio::select! {
                () = &mut ended => break,
                Some(ack) = self.acks.recv() => acknowledge(&mut open.consumer, ack).await,
            }
        }
        while let Ok(ack) = self.acks.try_recv() {
            acknowledge(&mut open.consumer, ack).await;
        }
        let goodbye = async {
            // Messages that the client holds already were not handled.
            self.count_unseen(&mut open.consumer);
            if self.worker.spec.options.ephemeral {
                open.consumer.unsubscribe().await
            } else {
                open.consumer.close().await
            }
        };
        if let Ok(Err(error)) = time::timeout(GOODBYE_TIME, goodbye).await {
            tracing::debug!(%error, topic = %self.topic, "a consumer has not ended in good order");
        }
    }

    fn count_unseen(&self, consumer: &mut OpenConsumer) {
        use futures_util::FutureExt as _;
        while let Some(Some(Ok(message))) = consumer.next().now_or_never() {
            drop(Job::new(
                &self.worker,
                self.purpose,
                message,
                &self.held,
                &self.acknowledger,
            ));
        }
    }

    async fn end_jobs(&mut self) {
        self.jobs.close();
        let jobs = self.jobs.clone();
        let mut ended = std::pin::pin!(jobs.wait());
        // Nothing acknowledges any more; the senders must not wait.
        loop {
            tokio::select! {
                () = &mut ended => return,
                Some(_) = self.acks.recv() => {}
            }
        }
    }

    /// Returns the kind of the subscription. In partitions the messages keep their order across
    /// processes, so a single consumer is active at a time.
    fn kind(&self) -> SubType {
        let spec = &self.worker.spec;
        match (spec.options.ephemeral, spec.is_partitioned()) {
            (true, _) => SubType::Exclusive,
            (false, true) => SubType::Failover,
            (false, false) => SubType::Shared,
        }
    }
}

async fn acknowledge(consumer: &mut OpenConsumer, ack: Ack) {
    if let Err(error) = consumer.ack_with_id(&ack.topic, ack.id).await {
        tracing::debug!(%error, "an acknowledgement was lost; the broker delivers the message again");
    }
}
