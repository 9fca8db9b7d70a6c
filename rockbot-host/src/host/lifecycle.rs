//! Starting and stopping a host: subsystems in the order of their stages, subscriptions last, and back again.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use rockbot_core::BoxError;
use rockbot_core::messaging::{Bus, BusError, DeliveryHandler, SubscribeOptions, Subscription, TopicPattern};
use rockbot_core::subsystem::{Parts, Running, Subsystem};
use rockbot_core::turn::ProgressSink;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::engine::{Resumed, TurnError, TurnService};
use crate::isolate::panic_message;

/// How long a host that cannot start may take to stop what had started.
const UNDO: Duration = Duration::from_secs(10);

/// How long handlers that were cancelled may take to notice.
const NOTICE: Duration = Duration::from_millis(100);

/// Where a host is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HostState {
    /// It answers [`Agent`](crate::Agent) calls; its subsystems and subscriptions have not begun.
    Built,
    /// Its subsystems are beginning.
    Starting,
    /// Everything works.
    Started,
    /// It takes no new work.
    Stopping,
    /// It has ended, for good.
    Stopped,
}

/// A host that did not start. What had started was stopped again; build a new one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A subsystem failed.
    #[error("`{name}` did not start: {source}")]
    Subsystem {
        /// Which one.
        name: String,
        /// Why.
        source: BoxError,
    },
    /// Interrupted turns cannot be read.
    #[error("interrupted turns cannot be resumed: {0}")]
    Resume(#[from] TurnError),
    /// The bus refused a subscription.
    #[error("the subscription to `{pattern}` failed: {source}")]
    Subscription {
        /// To what.
        pattern: String,
        /// Why.
        source: BusError,
    },
    /// It was started before, or has ended.
    #[error("the host was started before: build a new one to start again")]
    Again,
}

/// Why a host is not ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host is not ready: {}", .reasons.join("; "))]
pub struct NotReady {
    /// Each thing that is wrong.
    pub reasons: Vec<String>,
}

/// One subscription of a host.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) pattern: TopicPattern,
    pub(super) name: String,
    pub(super) options: SubscribeOptions,
}

/// What of a host starts and stops.
pub(super) struct Lifecycle {
    state: watch::Sender<HostState>,
    parts: Parts,
    turns: TurnService,
    bus: Option<BusSide>,
    waiting: Mutex<Vec<Box<dyn Subsystem>>>,
    works: Mutex<Works>,
}

/// The bus of a host, and what the host takes from it.
pub(super) struct BusSide {
    pub(super) bus: Arc<dyn Bus>,
    /// Whether others use it, too: then it does not end with the host.
    pub(super) is_shared: bool,
    pub(super) handler: Arc<dyn DeliveryHandler>,
    pub(super) intakes: Vec<Intake>,
}

/// What has started, in the order in which it did.
#[derive(Default)]
struct Works {
    subsystems: Vec<(String, Arc<dyn Running>)>,
    subscriptions: Vec<Subscription>,
}

impl BusSide {
    async fn subscribe(&self, intake: &Intake) -> Result<Subscription, StartError> {
        let (pattern, options) = (intake.pattern.clone(), intake.options.clone());
        let subscribed = self
            .bus
            .subscribe(pattern, &intake.name, options, Arc::clone(&self.handler));
        subscribed.await.map_err(|source| StartError::Subscription {
            pattern: intake.pattern.to_string(),
            source,
        })
    }
}

impl Lifecycle {
    pub(super) fn new(
        turns: TurnService,
        parts: Parts,
        subsystems: Vec<Box<dyn Subsystem>>,
        bus: Option<BusSide>,
    ) -> Self {
        Self {
            state: watch::Sender::new(HostState::Built),
            parts,
            turns,
            bus,
            waiting: Mutex::new(subsystems),
            works: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> HostState {
        *self.state.borrow()
    }

    pub(super) fn turns(&self) -> &TurnService {
        &self.turns
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(super) async fn start(&self) -> Result<Resumed, StartError> {
        if !self.advance(HostState::Starting, |state| state == HostState::Built) {
            return Err(StartError::Again);
        }
        let undone = Instant::now() + UNDO;
        match self.begin().await {
            Ok(resumed) if self.advance(HostState::Started, |state| state == HostState::Starting) => Ok(resumed),
            // It was stopped meanwhile, and did not know yet of all that had begun.
            Ok(_) => {
                self.end(undone).await;
                Err(StartError::Again)
            }
            Err(error) => {
                self.stop(undone).await;
                Err(error)
            }
        }
    }

    async fn begin(&self) -> Result<Resumed, StartError> {
        let mut waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.sort_by_key(|subsystem| subsystem.stage());
        for subsystem in waiting {
            let name = subsystem.name().to_owned();
            let started = AssertUnwindSafe(subsystem.start(&self.parts)).catch_unwind().await;
            let started =
                started.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_message(&*panic)).into()));
            match started {
                Ok(running) => lock(&self.works).subsystems.push((name, running.into())),
                Err(source) => return Err(StartError::Subsystem { name, source }),
            }
        }
        let resumed = self.turns.engine().resume_all(|_| ProgressSink::none()).await?;
        if let Some(side) = &self.bus {
            for intake in &side.intakes {
                let subscription = side.subscribe(intake).await?;
                lock(&self.works).subscriptions.push(subscription);
            }
        }
        Ok(resumed)
    }

    /// Stops in reverse: no more messages first, then turns reach a journal point, then subsystems write down what
    /// they hold, and the bus goes last, since all of them have things to say.
    pub(super) async fn stop(&self, deadline: Instant) {
        if !self.advance(HostState::Stopping, |state| state < HostState::Stopping) {
            return self.stopped(deadline).await;
        }
        self.end(deadline).await;
        if let Some(side) = self.bus.as_ref().filter(|side| !side.is_shared) {
            let left = side.bus.close(deadline.saturating_duration_since(Instant::now())).await;
            if left.unfinished > 0 {
                tracing::warn!(
                    messages = left.unfinished,
                    "messages were not dealt with when the host stopped"
                );
            }
        }
        self.state.send_replace(HostState::Stopped);
    }

    /// Ends what has begun.
    async fn end(&self, deadline: Instant) {
        let works = std::mem::take(&mut *lock(&self.works));
        // Work that is stuck leaves the others time to write down what they hold.
        let drained = half_of(half_of(Instant::now(), deadline), deadline);
        self.drain(works.subscriptions, drained).await;
        for (name, subsystem) in works.subsystems.into_iter().rev() {
            let stopping = AssertUnwindSafe(subsystem.stop()).catch_unwind();
            match timeout_at(half_of(Instant::now(), deadline), stopping).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => tracing::error!(subsystem = name, "a subsystem panicked when it was stopped"),
                Err(_) => tracing::warn!(subsystem = name, "a subsystem did not stop in time"),
            }
        }
        let flushing = self.turns.engine().memory.flush();
        match timeout_at(half_of(Instant::now(), deadline), flushing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "conversations could not be written when the host stopped"),
            Err(_) => {
                tracing::warn!("conversations were not all folded when the host stopped; nothing of them is lost")
            }
        }
    }

    /// Takes no more messages, and lets handlers and then turns come to their ends; what is left then is cancelled.
    async fn drain(&self, subscriptions: Vec<Subscription>, deadline: Instant) {
        let engine = self.turns.engine();
        // All of them stop at once, and are then waited for.
        let mut handlers = pin!(join_all(subscriptions.into_iter().map(Subscription::close)));
        let mut ended = timeout_at(half_of(Instant::now(), deadline), &mut handlers)
            .await
            .is_ok();
        engine.halt.cancel();
        engine.tasks.close();
        let _ = timeout_at(deadline, engine.tasks.wait()).await;
        if !ended {
            ended = timeout_at(deadline, &mut handlers).await.is_ok();
        }
        engine.abort_all();
        if !ended {
            let _ = timeout(NOTICE, handlers).await;
        }
    }

    /// Changes the state if the present one allows it; returns whether it did.
    fn advance(&self, next: HostState, allowed: impl Fn(HostState) -> bool) -> bool {
        self.state.send_if_modified(|state| {
            let is_allowed = allowed(*state);
            if is_allowed {
                *state = next;
            }
            is_allowed
        })
    }

    async fn stopped(&self, deadline: Instant) {
        let mut state = self.state.subscribe();
        let _ = timeout_at(deadline, state.wait_for(|state| *state == HostState::Stopped)).await;
    }

    pub(super) fn check(&self) -> Result<(), NotReady> {
        let mut reasons = Vec::new();
        let state = self.state();
        if state != HostState::Started {
            reasons.push(format!("its state is {state:?}"));
        }
        let works = lock(&self.works);
        let wrong = |(name, subsystem): &(String, Arc<dyn Running>)| {
            let problem = subsystem.check().err()?;
            Some(format!("`{name}`: {problem}"))
        };
        reasons.extend(works.subsystems.iter().filter_map(wrong));
        let ended = works
            .subscriptions
            .iter()
            .filter(|subscription| !subscription.is_active());
        reasons.extend(ended.map(|ended| format!("the subscription `{}` has ended", ended.name())));
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(NotReady { reasons }),
        }
    }
}

/// The moment in the middle between two.
fn half_of(from: Instant, to: Instant) -> Instant {
    from + to.saturating_duration_since(from) / 2
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What stands under these locks is whole at every moment, whoever panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifecycle")
            .field("state", &self.state())
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}
