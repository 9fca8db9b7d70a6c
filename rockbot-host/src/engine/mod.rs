//! The turn engine: the one door for all work of an agent.
//!
//! A message is accepted into the journal, waits for its session, is driven to its end, and gets exactly one
//! final reply. A turn that somebody wants outlives its process: it stops with the host, and goes on when the
//! host starts again. One that its last caller left is cancelled, unless it waits for a person.

mod approvals;
mod briefing;
mod context;
mod error;
mod live;
mod meters;
mod observe;
mod prompt_cache;
mod reply;
mod resume;
mod run;
mod service;
mod span;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use rockbot_core::chat::ModelTier;
use rockbot_core::store::{ConversationLog, ConversationMemory};
use rockbot_core::turn::{Acceptance, BusyPolicy, ProgressSink, RunState, TurnObserver, TurnOutcome, TurnRequest};
use rockbot_core::{TurnId, turn::JournalError};
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};

pub(crate) use briefing::Briefer;
pub use briefing::Briefing;
pub use error::TurnError;
pub(crate) use live::{LiveTurn, SteeringMessage, TurnState};
pub(crate) use reply::{ReplySender, ReplySlot};
pub use resume::Resumed;
pub use service::{TurnCall, TurnService};

use crate::behavior::{ModelBehavior, ModelBehaviors};
use crate::driver::TurnDriver;
use crate::profile::SystemPrompt;
use crate::session::{Admission, Sessions};
use crate::turn::{AcceptedTurn, CancelReason, FORMAT_VERSION, PolicySnapshot};
use meters::TurnMeters;
use prompt_cache::PrefixWatch;

/// How long this process may stay silent about a turn before another one may take it over. It writes at every
/// step, and no step takes longer than a model's answer.
const LEASE: Duration = Duration::from_secs(60 * 60);

/// Runs turns.
pub(crate) struct TurnEngine {
    pub(crate) driver: TurnDriver,
    pub(crate) memory: Arc<dyn ConversationMemory>,
    pub(crate) prompt: Arc<SystemPrompt>,
    briefer: Briefer,
    behaviors: Arc<ModelBehaviors>,
    prefix: PrefixWatch,
    pub(crate) log: Option<Arc<dyn ConversationLog>>,
    observers: Vec<Arc<dyn TurnObserver>>,
    pub(crate) replies: Option<Arc<dyn ReplySender>>,
    pub(crate) policy: PolicySnapshot,
    pub(crate) owner: String,
    agent: Arc<str>,
    meters: TurnMeters,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) live: Mutex<HashMap<TurnId, Arc<LiveTurn>>>,
    /// The turns whose acceptance is being written: the same message again waits for it.
    accepting: watch::Sender<HashSet<TurnId>>,
    /// Held while interrupted turns are taken over.
    resuming: tokio::sync::Mutex<()>,
    /// Held while something happens to a parked turn, so that decisions made at once all find their turn.
    pub(crate) unparking: tokio::sync::Mutex<()>,
    pub(crate) tasks: TaskTracker,
    /// Fires when tasks that have not ended by themselves are given up.
    pub(crate) abort: CancellationToken,
}

impl fmt::Debug for TurnEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnEngine")
            .field("owner", &self.owner)
            .field("memory", &self.memory)
            .field("live", &self.lock().len())
            .finish_non_exhaustive()
    }
}

/// What an engine works with.
pub(crate) struct EngineDeps {
    pub(crate) driver: TurnDriver,
    pub(crate) memory: Arc<dyn ConversationMemory>,
    /// Where everything that was said goes besides, if anywhere.
    pub(crate) log: Option<Arc<dyn ConversationLog>>,
    /// Who is told of turns that have ended.
    pub(crate) observers: Vec<Arc<dyn TurnObserver>>,
    pub(crate) prompt: Arc<SystemPrompt>,
    pub(crate) briefer: Briefer,
    pub(crate) behaviors: Arc<ModelBehaviors>,
    /// Sends the replies of messages that name a topic for them; without a bus nobody does.
    pub(crate) replies: Option<Arc<dyn ReplySender>>,
    pub(crate) policy: PolicySnapshot,
    /// How this process is named in claims.
    pub(crate) owner: String,
    /// The agent's name.
    pub(crate) agent: Arc<str>,
}

impl TurnEngine {
    pub(crate) fn new(deps: EngineDeps) -> Self {
        Self {
            driver: deps.driver,
            memory: deps.memory,
            log: deps.log,
            observers: deps.observers,
            prompt: deps.prompt,
            briefer: deps.briefer,
            behaviors: deps.behaviors,
            prefix: PrefixWatch::default(),
            replies: deps.replies,
            policy: deps.policy,
            owner: deps.owner,
            agent: deps.agent,
            meters: TurnMeters::default(),
            sessions: Arc::default(),
            live: Mutex::default(),
            accepting: watch::Sender::default(),
            resuming: tokio::sync::Mutex::default(),
            unparking: tokio::sync::Mutex::default(),
            tasks: TaskTracker::new(),
            abort: CancellationToken::new(),
        }
    }

    /// Runs `task` until it ends or the host gives its tasks up.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.spawn_in(Span::none(), task)
    }

    /// As [`TurnEngine::spawn`], within `span`.
    pub(crate) fn spawn_in(&self, span: Span, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let abort = self.abort.clone();
        // A turn's future is large, and spawning moves what it is given several times.
        let task = Box::pin(task);
        let task = async move {
            abort.run_until_cancelled(task).await;
        };
        self.tasks.spawn(task.instrument(span))
    }

    /// Accepts a message. Once this returns, the message has a turn that a crash cannot lose.
    ///
    /// A message that was accepted before leads to the same turn again, whether it ended, runs or was
    /// interrupted.
    pub(crate) async fn submit(
        self: &Arc<Self>,
        request: TurnRequest,
        progress: ProgressSink,
        slot: Option<Arc<ReplySlot>>,
    ) -> Result<Arc<LiveTurn>, TurnError> {
        if self.driver.halt.is_cancelled() {
            return Err(TurnError::Halted);
        }
        let mut accepting = Box::pin(self.clone().accept(request, progress, slot));
        if let Poll::Ready(accepted) = poll_fn(|cx| Poll::Ready(accepting.as_mut().poll(cx))).await {
            return accepted;
        }
        // While a journal takes its time the caller may stop waiting, and the message must not be left half way.
        let (tell, told) = oneshot::channel();
        self.spawn(async move {
            if let Err(Ok(live)) = tell.send(accepting.await) {
                live.cancel(CancelReason::Caller);
            }
        });
        told.await.unwrap_or(Err(TurnError::Halted))
    }

    async fn accept(
        self: Arc<Self>,
        request: TurnRequest,
        progress: ProgressSink,
        slot: Option<Arc<ReplySlot>>,
    ) -> Result<Arc<LiveTurn>, TurnError> {
        let decision = self.driver.router.as_ref().and_then(|router| router.select(&request));
        let policy = self.policy_of(&request, decision.as_ref().map(|decision| decision.tier));
        let request = Arc::new(request);
        let accepted = AcceptedTurn {
            version: FORMAT_VERSION,
            request: request.clone(),
            policy,
        };
        let run = accepted.to_run(self.driver.clock.now()).map_err(unwritable)?;
        let _accepting = Accepting::enter(&self.accepting, run.run.clone()).await;
        let acceptance = self.driver.journal.accept(&run, &self.owner, LEASE).await?;
        let accepted = |is_mine| {
            if let Some(slot) = &slot {
                slot.accept(is_mine);
            }
        };
        let live = LiveTurn::serving(run.run.clone(), request, progress, slot.clone());
        match acceptance {
            Acceptance::New(claim) => {
                live.routed(decision);
                let entry = self.admit(&live).await;
                // Not before: the next message of the session is let in by this, and must find this one there.
                accepted(true);
                let (engine, task_live) = (self.clone(), live.clone());
                let span = self.span(&live);
                self.spawn_in(span, async move {
                    engine.run_new(task_live, claim, policy, run.at, entry).await;
                });
                Ok(live)
            }
            // It is answered again.
            Acceptance::Known(RunState::Finished(outcome)) => {
                accepted(true);
                live.publish(TurnState::Ended(Arc::new(read_outcome(live.id(), &outcome))));
                Ok(live)
            }
            // Somebody runs it, or a crash interrupted it; whoever runs it has its reply sent, too.
            _ => {
                accepted(false);
                Box::pin(self.rejoin(live)).await
            }
        }
    }

    /// Makes a new turn known, and lets it into its session or the line before it.
    async fn admit(self: &Arc<Self>, live: &Arc<LiveTurn>) -> Admission {
        self.register(live);
        if live.request().busy == BusyPolicy::Supersede {
            Box::pin(self.supersede_parked(live.request())).await;
        }
        self.sessions.enter(live, live.request().busy)
    }

    /// The settings of a message's turn: the host's, as its model's behavior and the message change them.
    fn policy_of(&self, request: &TurnRequest, tier: Option<ModelTier>) -> PolicySnapshot {
        let behavior = self.behavior(request.tier.or(tier));
        let mut policy = behavior.policy(self.policy, request.budget);
        policy.economy.window = self.driver.window(request.tier.or(tier));
        PolicySnapshot { tier, ..policy }
    }

    /// How the model of a tier is treated.
    fn behavior(&self, tier: Option<ModelTier>) -> ModelBehavior {
        if self.behaviors.is_empty() {
            return ModelBehavior::default();
        }
        let model = self.driver.chat.model_of(tier.unwrap_or_default());
        model.map(|model| self.behaviors.of(&model)).unwrap_or_default()
    }

    /// A turn that runs here, or goes on here.
    async fn rejoin(self: &Arc<Self>, live: Arc<LiveTurn>) -> Result<Arc<LiveTurn>, TurnError> {
        if let Some(running) = self.find(live.id()) {
            return Ok(running);
        }
        // All go on, not this one alone: its message may have joined an earlier one of its session.
        let listener = |turn: &TurnId| match turn == live.id() {
            true => live.progress().clone(),
            false => ProgressSink::none(),
        };
        self.resume_all(listener).await?;
        match self.find(live.id()) {
            Some(resumed) => Ok(resumed),
            None => self.ended_or_elsewhere(live).await,
        }
    }

    /// A turn that nobody can go on with here: it has just ended, perhaps because it cannot be read.
    async fn ended_or_elsewhere(&self, live: Arc<LiveTurn>) -> Result<Arc<LiveTurn>, TurnError> {
        let state = self.driver.journal.read(live.id()).await?.map(|run| run.state);
        let Some(RunState::Finished(outcome)) = state else {
            return Err(TurnError::Elsewhere(live.id().clone()));
        };
        live.publish(TurnState::Ended(Arc::new(read_outcome(live.id(), &outcome))));
        Ok(live)
    }

    /// The end of a turn, however long it takes.
    pub(crate) async fn outcome(&self, turn: &TurnId) -> Result<TurnOutcome, TurnError> {
        if let Some(live) = self.find(turn) {
            return match live.ended().await {
                TurnState::Ended(outcome) => Ok((*outcome).clone()),
                TurnState::Working | TurnState::Parked(_) | TurnState::Halted => Err(TurnError::Halted),
            };
        }
        match self.driver.journal.read(turn).await? {
            Some(run) => match run.state {
                RunState::Finished(outcome) => Ok(read_outcome(turn, &outcome)),
                _ => Err(TurnError::Interrupted(turn.clone())),
            },
            None => Err(TurnError::NotFound(turn.clone())),
        }
    }

    /// The turn, if this process works on it or it waits here for a person.
    pub(crate) fn find(&self, turn: &TurnId) -> Option<Arc<LiveTurn>> {
        self.lock().get(turn).cloned()
    }

    /// Whether no turn works here and no model is asked.
    pub(crate) fn is_idle(&self) -> bool {
        let works = |live: &Arc<LiveTurn>| matches!(live.news(), TurnState::Working);
        self.driver.chat.is_idle() && !self.lock().values().any(works)
    }

    /// Whether the turn is one of this host's, of the last day.
    pub(crate) async fn knows(&self, turn: &TurnId) -> Result<bool, JournalError> {
        Ok(self.find(turn).is_some() || self.driver.journal.read(turn).await?.is_some())
    }

    /// Tells those who wait for a turn that this process works on it no more.
    fn leave(&self, live: &LiveTurn) {
        self.deregister(live.id());
        live.publish(TurnState::Halted);
    }

    /// Gives up all turns and tasks: nothing here works any more.
    pub(crate) fn give_up(&self) {
        self.driver.halt.cancel();
        self.abort.cancel();
        let left: Vec<_> = self.lock().values().cloned().collect();
        left.iter().for_each(|live| self.leave(live));
    }

    /// Makes a turn known; one that comes after the end of all work is told so at once.
    fn register(&self, live: &Arc<LiveTurn>) {
        self.lock().insert(live.id().clone(), live.clone());
        if self.abort.is_cancelled() {
            self.leave(live);
        }
    }

    fn deregister(&self, turn: &TurnId) {
        self.lock().remove(turn);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, Arc<LiveTurn>>> {
        // No code that can panic runs under the lock.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one acceptance of a turn that is being written; dropping it lets the next one go on.
struct Accepting<'a> {
    turns: &'a watch::Sender<HashSet<TurnId>>,
    turn: TurnId,
}

impl<'a> Accepting<'a> {
    async fn enter(turns: &'a watch::Sender<HashSet<TurnId>>, turn: TurnId) -> Self {
        while !turns.send_if_modified(|turns| turns.insert(turn.clone())) {
            let left = |turns: &HashSet<TurnId>| !turns.contains(&turn);
            // The sender lives as long as `turns`.
            let _ = turns.subscribe().wait_for(left).await;
        }
        Self { turns, turn }
    }
}

impl Drop for Accepting<'_> {
    fn drop(&mut self) {
        self.turns.send_if_modified(|turns| turns.remove(&self.turn));
    }
}

/// The outcome as the journal keeps it; one that cannot be read is an honest failure.
fn read_outcome(turn: &TurnId, outcome: &RawValue) -> TurnOutcome {
    serde_json::from_str(outcome.get()).unwrap_or_else(|_| crate::turn::Turn::unreadable(turn.clone()))
}

fn unwritable(error: serde_json::Error) -> TurnError {
    JournalError::Io {
        context: "the request cannot be written as JSON".to_owned(),
        source: error.into(),
    }
    .into()
}
