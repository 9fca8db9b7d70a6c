//! Start and stop of a host: subsystems in the order of their stages, subscriptions last, and in
//! reverse.
//!
//! Building a host has two phases: every `Subsystem` declares its parts, requirements and
//! handlers; then all missing parts and conflicts are reported at once. The settings are among
//! the parts: a subsystem reads its own sections while it declares, and options set in code win.
//! Once all have declared, an unread setting is an error (`settings_check`): a name in a file, or
//! in a variable with the prefix, that no part knows. In an agent that is built from its
//! configuration alone, a section whose part is missing is an error, too.
//!
//! `start` starts subsystems by stage, resumes turns, and subscribes last. `shutdown` goes in
//! reverse: subscriptions, turns, subsystems, the bus (unless it is shared), all within one
//! deadline. No new turn begins (`closing`), the running turns go on to their ends, and turns
//! that do not end in time stop at a journal point (`halt`).
//!
//! The bus is closed with the host, unless it is shared (`shared_bus`).

use std::error::Error;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use rockbot_core::BoxError;
use rockbot_core::messaging::{Bus, BusError, DeliveryHandler, SubscribeOptions, Subscription, TopicPattern};
use rockbot_core::store::{ConversationMemory as _, StoreError};
use rockbot_core::subsystem::{Parts, Running, Subsystem};
use rockbot_core::support::caught;
use rockbot_core::turn::JournalError;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::engine::{Resumed, RuntimeProblem, TurnError, TurnService, check_runtime};
use crate::handlers::BusAnnouncer;
use crate::workers::{Announcer, Announcing};

/// Time limit for stopping the parts that had started, when a host cannot start.
const UNDO: Duration = Duration::from_secs(10);

/// Maximum part of the time of turns that is left for unfinished turns to come to a journal
/// point.
const MAX_HALT: Duration = Duration::from_secs(5);

/// Time for calls of other programs that are cut off to answer with an error.
const ANSWER_GRACE: Duration = Duration::from_millis(500);

/// Time for polling aborted turns and cancelled handlers once more, so that they can end.
const CANCEL_GRACE: Duration = Duration::from_millis(100);

/// The state of a host. It only advances, in the order of the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HostState {
    /// The host answers [`Agent`](crate::Agent) calls; its subsystems and subscriptions have not begun.
    Built,
    /// The subsystems are starting.
    Starting,
    /// Subsystems and subscriptions are running.
    Started,
    /// The host accepts no new work.
    Stopping,
    /// The host has ended and cannot be started again.
    Stopped,
}

/// The error of [`AgentHost::start`](super::AgentHost::start). The parts that had started were
/// stopped again; build a new host to try again. The text contains the cause, so the
/// [source](Error::source) is the cause's own.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A subsystem failed to start.
    Subsystem {
        /// The name of the subsystem.
        name: String,
        /// The cause.
        cause: BoxError,
    },
    /// The journal with the interrupted turns cannot be read.
    Resume(TurnError),
    /// The bus refused a subscription.
    Subscription {
        /// The pattern of the subscription.
        pattern: String,
        /// The cause.
        cause: BusError,
    },
    /// The host was started before, or has ended.
    Again,
    /// There is no tokio runtime.
    NoRuntime,
    /// The tokio runtime was built without `enable_time` or `enable_all`.
    NoTimers,
}

impl StartError {
    /// Returns `true` if the start of a new host may succeed a little later, with nothing else done.
    /// `false` for a subsystem, except where its cause is an error of the bus, a store or the journal
    /// that says so.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::Subsystem { cause, .. } => {
                cause.downcast_ref().is_some_and(BusError::retry_helps)
                    || cause.downcast_ref().is_some_and(StoreError::retry_helps)
                    || cause.downcast_ref().is_some_and(JournalError::retry_helps)
            }
            Self::Resume(error) => error.retry_helps(),
            Self::Subscription { cause, .. } => cause.retry_helps(),
            Self::Again | Self::NoRuntime | Self::NoTimers => false,
        }
    }
}

impl From<RuntimeProblem> for StartError {
    fn from(problem: RuntimeProblem) -> Self {
        match problem {
            RuntimeProblem::Missing => Self::NoRuntime,
            RuntimeProblem::NoTimers => Self::NoTimers,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subsystem { name, cause } => write!(f, "`{name}` did not start: {cause}"),
            Self::Resume(cause) => write!(f, "interrupted turns cannot be resumed: {cause}"),
            Self::Subscription { pattern, cause } => write!(f, "the subscription to `{pattern}` failed: {cause}"),
            Self::Again => f.write_str("the host was started before: build a new one to start again"),
            Self::NoRuntime => fmt::Display::fmt(&RuntimeProblem::Missing, f),
            Self::NoTimers => fmt::Display::fmt(&RuntimeProblem::NoTimers, f),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Subsystem { cause, .. } => cause.source(),
            Self::Resume(cause) => cause.source(),
            Self::Subscription { cause, .. } => cause.source(),
            Self::Again | Self::NoRuntime | Self::NoTimers => None,
        }
    }
}

/// The error of [`AgentHost::readiness`](super::AgentHost::readiness).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the host is not ready: {}", .reasons.join("; "))]
#[non_exhaustive]
pub struct NotReady {
    /// The reasons, at least one.
    pub reasons: Vec<String>,
}

impl NotReady {
    /// Returns `true`: the host may be ready a little later.
    pub fn retry_helps(&self) -> bool {
        true
    }
}

/// A subscription of a host, before it begins.
#[derive(Debug)]
pub(super) struct PendingSubscription {
    pub(super) pattern: TopicPattern,
    pub(super) name: String,
    pub(super) options: SubscribeOptions,
}

/// The parts of a host that start and stop.
pub(super) struct Lifecycle {
    state: watch::Sender<HostState>,
    parts: Parts,
    turns: TurnService,
    bus: Option<BusSide>,
    /// Publishes the agent's announcements.
    unasked: Option<BusAnnouncer>,
    waiting: Mutex<Vec<Box<dyn Subsystem>>>,
    started: Mutex<StartedParts>,
    /// Held by the call that stops the host. A tokio mutex, because parts end under it.
    stopping: tokio::sync::Mutex<()>,
}

/// The bus of a host, its subscriptions, and the pipeline behind them.
pub(super) struct BusSide {
    pub(super) bus: Arc<dyn Bus>,
    /// `true` when other components use the bus, too: then it stays open.
    pub(super) is_shared: bool,
    pub(super) handler: Arc<dyn DeliveryHandler>,
    pub(super) pending: Vec<PendingSubscription>,
    /// Announces the host's tools while it runs.
    pub(super) announcer: Option<Announcer>,
}

/// The parts that have started, in the order of their start.
#[derive(Default)]
struct StartedParts {
    subsystems: Vec<(String, Arc<dyn Running>)>,
    subscriptions: Vec<Subscription>,
    announcing: Option<Announcing>,
}

impl BusSide {
    async fn subscribe(&self, pending: &PendingSubscription) -> Result<Subscription, StartError> {
        let pattern = pending.pattern.clone();
        let options = pending.options.clone();
        let subscribed = self
            .bus
            .subscribe(pattern, &pending.name, options, Arc::clone(&self.handler));
        subscribed.await.map_err(|cause| StartError::Subscription {
            pattern: pending.pattern.to_string(),
            cause,
        })
    }
}

impl BusSide {
    async fn announce(&self, announcer: Announcer) -> Result<Announcing, StartError> {
        announcer.start().await.map_err(|cause| StartError::Subscription {
            pattern: Announcer::TOPIC.to_owned(),
            cause,
        })
    }
}

impl Lifecycle {
    pub(super) fn new(
        turns: TurnService,
        parts: Parts,
        subsystems: Vec<Box<dyn Subsystem>>,
        bus: Option<BusSide>,
        unasked: Option<BusAnnouncer>,
    ) -> Self {
        Self {
            state: watch::Sender::new(HostState::Built),
            parts,
            turns,
            bus,
            unasked,
            waiting: Mutex::new(subsystems),
            started: Mutex::default(),
            stopping: tokio::sync::Mutex::default(),
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
        check_runtime()?;
        if !self.advance(HostState::Starting, |state| state == HostState::Built) {
            return Err(StartError::Again);
        }
        let deadline = Instant::now() + UNDO;
        match self.begin().await {
            Ok(resumed) if self.advance(HostState::Started, |state| state == HostState::Starting) => Ok(resumed),
            // `stop` ran meanwhile, and could not see the parts that started after it: end them here.
            Ok(_) => {
                self.end(deadline).await;
                Err(StartError::Again)
            }
            Err(error) => {
                self.stop(deadline).await;
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
            let started = caught(started).unwrap_or_else(|panic| Err(format!("it panicked: {panic}").into()));
            match started {
                Ok(running) => lock(&self.started).subsystems.push((name, running.into())),
                Err(cause) => return Err(StartError::Subsystem { name, cause }),
            }
        }
        let resumed = self.turns.engine().take_over_all().await;
        let resumed = resumed.map_err(StartError::Resume)?;
        if let Some(side) = &self.bus {
            for pending in &side.pending {
                let subscription = side.subscribe(pending).await?;
                lock(&self.started).subscriptions.push(subscription);
            }
            // Last: an agent that reads the announcement may call at once.
            if let Some(announcer) = side.announcer.clone() {
                let announcing = side.announce(announcer).await?;
                lock(&self.started).announcing = Some(announcing);
            }
        }
        if let Some(unasked) = self.unasked.clone() {
            let engine = self.turns.engine();
            engine.spawn(unasked.run(engine.clone()));
        }
        Ok(resumed)
    }

    /// Stops in reverse order: subscriptions first, then turns end or reach a journal point, then
    /// subsystems flush, and the bus closes last, since all of them may still publish.
    ///
    /// If it is called several times, one call stops the host, and the others wait. When that call
    /// is dropped, the next call goes on.
    pub(super) async fn stop(&self, deadline: Instant) {
        if !self.advance(HostState::Stopping, |state| state < HostState::Stopping) && self.state() == HostState::Stopped
        {
            return;
        }
        if let Err(problem) = check_runtime() {
            tracing::error!(%problem, "the host stops at once; its turns go on at the next start");
            self.turns.engine().abort_all();
            self.state.send_replace(HostState::Stopped);
            return;
        }
        let Ok(_stopping) = timeout_at(deadline, self.stopping.lock()).await else {
            return;
        };
        if self.state() == HostState::Stopped {
            return;
        }
        self.end(deadline).await;
        if let Some(side) = self.bus.as_ref().filter(|side| !side.is_shared) {
            let left = side.bus.close(deadline.saturating_duration_since(Instant::now())).await;
            if left.unfinished > 0 {
                tracing::warn!(
                    messages = left.unfinished,
                    "messages were still unhandled when the bus closed"
                );
            }
        }
        self.state.send_replace(HostState::Stopped);
    }

    /// Ends the parts that have started, within `deadline`. A part is taken from them when it has
    /// ended, so that a call that is dropped can be repeated.
    async fn end(&self, deadline: Instant) {
        // Its tools are withdrawn first, so that agents give its calls to others while it finishes
        // the calls that it has.
        let announcing = lock(&self.started).announcing.take();
        if let Some(announcing) = announcing {
            let _ = timeout_at(deadline, announcing.end()).await;
        }
        // A subscription that is dropped ends, too.
        let subscriptions = std::mem::take(&mut lock(&self.started).subscriptions);
        // Three quarters for handlers and turns: a stuck one leaves the subsystems a quarter to flush.
        let drained = half_of(half_of(Instant::now(), deadline), deadline);
        self.drain(subscriptions, drained).await;
        while let Some((name, subsystem)) = self.last_started() {
            let stopping = AssertUnwindSafe(subsystem.stop()).catch_unwind().map(caught);
            match timeout_at(half_of(Instant::now(), deadline), stopping).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => tracing::error!(subsystem = name, "a subsystem panicked while stopping"),
                Err(_) => tracing::warn!(
                    subsystem = name,
                    "a subsystem did not stop in time; continuing without it"
                ),
            }
            lock(&self.started).subsystems.pop();
        }
        let flushing = self.turns.engine().memory.flush();
        match timeout_at(half_of(Instant::now(), deadline), flushing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "conversations could not be flushed while the host stopped"),
            Err(_) => {
                tracing::warn!("not all conversations were compacted before the deadline; none is lost")
            }
        }
    }

    /// Unsubscribes, and lets handlers and turns come to their ends; the rest is cancelled at
    /// `deadline`.
    async fn drain(&self, subscriptions: Vec<Subscription>, deadline: Instant) {
        let engine = self.turns.engine();
        // Joined rather than one after the other: all of them unsubscribe at once, and are then waited
        // for.
        let mut handlers = pin!(join_all(subscriptions.into_iter().map(Subscription::close)));
        let mut ended = timeout_at(half_of(Instant::now(), deadline), &mut handlers)
            .await
            .is_ok();
        // Until here handlers could begin turns. Now the running turns go on to their answers, and
        // no other turn begins.
        engine.closing.cancel();
        engine.tasks.close();
        if timeout_at(halt_before(deadline), engine.tasks.wait()).await.is_err() {
            // Turns that still run end at their next journal point, which also ends the handlers that wait
            // for them.
            engine.halt.cancel();
            let _ = timeout_at(deadline, engine.tasks.wait()).await;
        }
        if !ended {
            ended = timeout_at(deadline, &mut handlers).await.is_ok();
        }
        if !ended {
            engine.cut_off.cancel();
            ended = timeout(ANSWER_GRACE, &mut handlers).await.is_ok();
        }
        engine.abort_all();
        // Gone before the subsystems stop: a call that fails because of that has no result, and is asked
        // for at the resume.
        let _ = timeout(CANCEL_GRACE, engine.tasks.wait()).await;
        if !ended {
            let _ = timeout(CANCEL_GRACE, handlers).await;
        }
    }

    /// Advances the state if `allowed` accepts the present one. Returns `true` if it did.
    ///
    /// Compare and set are one operation under the lock of the channel, so of two concurrent calls
    /// one succeeds.
    fn advance(&self, next: HostState, allowed: impl Fn(HostState) -> bool) -> bool {
        self.state.send_if_modified(|state| {
            let is_allowed = allowed(*state);
            if is_allowed {
                *state = next;
            }
            is_allowed
        })
    }

    /// Returns the subsystem that started last and has not ended.
    fn last_started(&self) -> Option<(String, Arc<dyn Running>)> {
        lock(&self.started).subsystems.last().cloned()
    }

    /// Returns every reason why the host is not ready.
    pub(super) fn check(&self) -> Result<(), NotReady> {
        let mut reasons = Vec::new();
        let state = self.state();
        if state != HostState::Started {
            reasons.push(format!("its state is {state:?}"));
        }
        let started = lock(&self.started);
        let wrong = |(name, subsystem): &(String, Arc<dyn Running>)| {
            let problem = subsystem.check().err()?;
            Some(format!("`{name}`: {problem}"))
        };
        reasons.extend(started.subsystems.iter().filter_map(wrong));
        reasons.extend(self.turns.engine().memory.problem());
        let ended = started
            .subscriptions
            .iter()
            .filter(|subscription| !subscription.is_active());
        reasons.extend(ended.map(|ended| format!("the subscription `{}` has ended", ended.name())));
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(NotReady { reasons })
        }
    }
}

/// Returns the moment from now on until `deadline` when turns halt: a quarter of the time is left
/// then, which a mutating call that has just begun may need.
fn halt_before(deadline: Instant) -> Instant {
    let left = deadline.saturating_duration_since(Instant::now());
    deadline - MAX_HALT.min(left / 4)
}

/// Returns the moment halfway between two.
fn half_of(from: Instant, to: Instant) -> Instant {
    from + to.saturating_duration_since(from) / 2
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values under these locks are valid at every moment, so a panic elsewhere cannot leave them
    // half changed.
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
