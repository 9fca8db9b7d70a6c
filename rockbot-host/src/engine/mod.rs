//! The turn engine: accepts messages, runs their turns, and gives each message exactly one final
//! reply.
//!
//! | File | Concern |
//! |---|---|
//! | `accept.rs` | Writes a message into the journal and admits its turn to a session. |
//! | `run.rs` | Waits for the session, drives the turn, and parks, halts or ends it. |
//! | `pending_tools.rs` | Waits for tools that are on their way when a turn begins. |
//! | `context.rs` | Builds what the model is shown at the start of a turn. |
//! | `history/` | The conversation before a turn, as it is kept and as the model is shown it. |
//! | `end.rs` | Writes the conversation, the reply and the end of the turn, in this order. |
//! | `reply.rs` | The protocol by which the final reply of a message is sent once. |
//! | `results.rs` | Tells the end of a turn in the background to the session that waits for it. |
//! | `unasked.rs` | Announces answers and requests for approvals that no caller waits for. |
//! | `service.rs` | Runs turns as a tower service. |
//! | `runner.rs` | Runs turns for the parts of the host. |
//! | `layers.rs` | Passes the work of a turn through the user's layers. |
//! | `resume.rs`, `approvals.rs` | Resume interrupted turns, and turns that waited for a person. |
//! | `expiries.rs` | Refuses the undecided calls of parked turns when their time is over. |
//! | `approvals_below.rs` | Asks the user of a turn for the approvals that a called agent needs. |
//! | `cancel.rs` | Cancels turns that work or wait. |
//!
//! The engine owns the journal, the clock, the signals of the stop and the tier router, and shares
//! them with the [`TurnDriver`], which performs the steps of one turn. A turn that a caller waits
//! for outlives its process: it stops with the host and resumes when the host starts again. A turn
//! that its last caller left is cancelled, unless it waits for a person.

mod accept;
mod approvals;
mod approvals_below;
mod background;
mod briefing;
mod cancel;
mod claim;
mod cluster;
mod context;
mod costs;
mod earlier_reports;
mod end;
mod expiries;
mod history;
mod inbox;
mod layers;
mod meters;
mod observe;
mod pending_tools;
mod prompt_cache;
mod reply;
mod results;
mod resume;
mod run;
mod runner;
mod runtime;
mod service;
mod span;
mod unasked;

use std::fmt;
use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rockbot_core::chat::Ledger;
use rockbot_core::store::{ConversationLog, ConversationMemory, WorkingMemory};
use rockbot_core::tool::PendingTools;
use rockbot_core::turn::{JournalError, RunBody, RunState, TurnJournal, TurnObserver, TurnOutcome};
use rockbot_core::{Clock, Principal, TurnId};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};

pub use briefing::Briefing;
pub(crate) use briefing::ResolvedBriefing;
pub(crate) use cluster::owner_of;
pub(crate) use costs::tokens;
pub use history::HistoryOptions;
pub(crate) use history::bounded;
pub(crate) use layers::TurnLayers;
pub(crate) use reply::ReplySender;
pub use resume::Resumed;
pub(crate) use rockbot_core::turn::{TurnCall, TurnError};
pub(crate) use runner::HostTurns;
pub(crate) use runtime::{RuntimeProblem, check_runtime};
pub use service::TurnService;

use crate::agents::HostAgents;
use crate::announcements::Announcements;
use crate::answer::AnswerFilter;
use crate::behavior::ModelBehaviors;
use crate::chat::{BackgroundHost, GuardedChat};
use crate::conversation_outbox::ConversationOutbox;
use crate::driver::{ContextSources, Hooks, LargeResults, OutputFilter, TurnDriver};
use crate::live::{BacklogLimits, LiveTurn, LiveTurns, Sessions, TurnState};
use crate::media_library::MediaLibrary;
use crate::routing::TierRouter;
use crate::telemetry::Traces;
use crate::tool::ToolDispatcher;
use crate::turn::PolicySnapshot;
use accept::AcceptingTurns;
use background::Background;
use cancel::CalledOff;
use cluster::HeldRuns;
use expiries::Expiries;
use history::HistoryWindow;
use meters::TurnMeters;
use prompt_cache::PrefixWatch;

/// Maximum number of messages of the bus that wait for room in full sessions. The bus has twice
/// as many workers for users' messages.
pub(crate) const MAX_WAITING: usize = 8;

/// The engine that runs the turns of one host.
pub(crate) struct TurnEngine {
    pub(crate) journal: Arc<dyn TurnJournal>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Fires when the host stops: no turn begins any more, and the running turns have until `halt`
    /// to end. A child of `halt`, so that it has fired whenever `halt` has.
    pub(crate) closing: CancellationToken,
    /// Fires when the time of running turns is over: they end at their next journal point and are
    /// resumed later.
    pub(crate) halt: CancellationToken,
    /// Selects the tier of turns whose message names none. Without it that is the balanced tier.
    pub(crate) router: Option<Arc<TierRouter>>,
    pub(crate) agents: Arc<HostAgents>,
    pub(crate) tools: Arc<ToolDispatcher>,
    /// The tools that turns wait for before they begin.
    pending_tools: Option<Arc<dyn PendingTools>>,
    pub(crate) ledger: Ledger,
    sources: Arc<ContextSources>,
    output: OutputFilter,
    driver: TurnDriver,
    layers: Option<TurnLayers>,
    /// The announcements of the agent.
    pub(crate) announcements: Arc<Announcements>,
    /// The conversation memory, with an outbox for the entries that it refuses.
    pub(crate) memory: Arc<ConversationOutbox>,
    briefing: ResolvedBriefing,
    history: HistoryOptions,
    window: HistoryWindow,
    behaviors: Arc<ModelBehaviors>,
    prefix: PrefixWatch,
    pub(crate) media: Arc<MediaLibrary>,
    working_memory: Option<Arc<dyn WorkingMemory>>,
    log: Option<Arc<dyn ConversationLog>>,
    observers: Vec<Arc<dyn TurnObserver>>,
    replies: Option<Arc<dyn ReplySender>>,
    policy: PolicySnapshot,
    /// The principals that decide about calls of all turns.
    approvers: Vec<Principal>,
    owner: String,
    agent: Arc<str>,
    traces: Traces,
    meters: TurnMeters,
    sessions: Arc<Sessions>,
    background: Arc<Background>,
    live: LiveTurns,
    /// The turns whose acceptance is being written; a redelivery of the same message waits for it.
    accepting: AcceptingTurns,
    /// The places of messages that wait for room in full sessions.
    waiting: Semaphore,
    /// Held while interrupted turns are taken over, so that no turn is resumed twice.
    resuming: tokio::sync::Mutex<()>,
    /// `true` while turns that could not end here wait to be resumed.
    resumes_later: AtomicBool,
    /// The cancelled turns among them.
    called_off: CalledOff,
    /// The runs whose leases are renewed.
    held: HeldRuns,
    /// `true` once the leases of a journal of several processes are renewed.
    keeps_leases: AtomicBool,
    /// `true` once turns of other processes are taken over.
    takes_over: AtomicBool,
    /// Held while a parked turn changes, so that each of several decisions at once finds the turn
    /// parked or running, never in between. A tokio mutex, because the journal is written under it.
    unparking: tokio::sync::Mutex<()>,
    /// The ends of the waits of parked turns.
    expiries: Expiries,
    pub(crate) tasks: TaskTracker,
    /// Fires when calls of other programs that did not end within the shutdown deadline are answered
    /// with an error.
    pub(crate) cut_off: CancellationToken,
    /// Fires when tasks that did not end within the shutdown deadline are aborted.
    pub(crate) abort: CancellationToken,
}

impl fmt::Debug for TurnEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnEngine")
            .field("owner", &self.owner)
            .field("memory", &self.memory)
            .field("live", &self.live.len())
            .finish_non_exhaustive()
    }
}

/// The parts that an engine is built from.
pub(crate) struct EngineDeps {
    pub(crate) journal: Arc<dyn TurnJournal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) router: Option<Arc<TierRouter>>,
    pub(crate) agents: Arc<HostAgents>,
    pub(crate) tools: Arc<ToolDispatcher>,
    /// The tools that turns wait for before they begin; `None` in a host whose tools are all there.
    pub(crate) pending_tools: Option<Arc<dyn PendingTools>>,
    /// The prices of models, and the record of the costs of answers.
    pub(crate) ledger: Ledger,
    pub(crate) sources: Arc<ContextSources>,
    pub(crate) large: LargeResults,
    /// The filter of answers before people see them.
    pub(crate) filter: Option<Arc<dyn AnswerFilter>>,
    /// The hooks of the host's program.
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) memory: Arc<dyn ConversationMemory>,
    pub(crate) media: Arc<MediaLibrary>,
    /// The log that receives each message and answer besides the conversation memory.
    pub(crate) log: Option<Arc<dyn ConversationLog>>,
    /// The user's layers around turns, if there are any.
    pub(crate) layers: Option<TurnLayers>,
    /// The observers of turns that have ended.
    pub(crate) observers: Vec<Arc<dyn TurnObserver>>,
    pub(crate) briefing: ResolvedBriefing,
    pub(crate) history: HistoryOptions,
    pub(crate) behaviors: Arc<ModelBehaviors>,
    /// The sender of replies to messages that name a reply topic; `None` without a bus.
    pub(crate) replies: Option<Arc<dyn ReplySender>>,
    pub(crate) policy: PolicySnapshot,
    pub(crate) backlog: BacklogLimits,
    /// The name of this process in journal claims.
    pub(crate) approvers: Vec<Principal>,
    pub(crate) owner: String,
    /// The name of the agent.
    pub(crate) agent: Arc<str>,
    pub(crate) traces: Traces,
}

impl EngineDeps {
    /// Creates the driver, which shares the parts of the engine.
    fn driver(&mut self, output: &OutputFilter, halt: &CancellationToken) -> TurnDriver {
        TurnDriver {
            agents: self.agents.clone(),
            tools: self.tools.clone(),
            large: take(&mut self.large),
            media: self.media.clone(),
            sources: self.sources.clone(),
            router: self.router.clone(),
            ledger: self.ledger.clone(),
            output: output.clone(),
            hooks: self.hooks.clone(),
            journal: self.journal.clone(),
            clock: self.clock.clone(),
            closing: halt.child_token(),
            halt: halt.clone(),
        }
    }
}

impl TurnEngine {
    /// Creates an engine without any live turn.
    pub(crate) fn new(mut deps: EngineDeps) -> Self {
        let output = OutputFilter::new(deps.filter.take());
        let halt = CancellationToken::new();
        let working_memory = deps.large.memory.clone();
        let driver = deps.driver(&output, &halt);
        let memory = ConversationOutbox::new(deps.memory, deps.journal.clone(), deps.owner.clone());
        let announcements = Announcements::new(deps.journal.clone(), deps.owner.clone(), deps.clock.clone());
        Self {
            journal: deps.journal,
            clock: deps.clock,
            announcements,
            closing: driver.closing.clone(),
            halt,
            router: deps.router,
            agents: deps.agents,
            tools: deps.tools,
            pending_tools: deps.pending_tools,
            ledger: deps.ledger,
            sources: deps.sources,
            output,
            driver,
            layers: deps.layers,
            memory: Arc::new(memory),
            media: deps.media,
            working_memory,
            log: deps.log,
            observers: deps.observers,
            briefing: deps.briefing,
            history: deps.history,
            window: HistoryWindow::default(),
            behaviors: deps.behaviors,
            prefix: PrefixWatch::default(),
            replies: deps.replies,
            policy: deps.policy,
            approvers: deps.approvers,
            owner: deps.owner,
            agent: deps.agent,
            traces: deps.traces,
            meters: TurnMeters::default(),
            sessions: Sessions::new(deps.backlog),
            background: Arc::default(),
            live: LiveTurns::default(),
            accepting: AcceptingTurns::default(),
            waiting: Semaphore::new(MAX_WAITING),
            resuming: tokio::sync::Mutex::default(),
            resumes_later: AtomicBool::default(),
            called_off: CalledOff::default(),
            held: HeldRuns::default(),
            keeps_leases: AtomicBool::default(),
            takes_over: AtomicBool::default(),
            unparking: tokio::sync::Mutex::default(),
            expiries: Expiries::default(),
            tasks: TaskTracker::new(),
            cut_off: CancellationToken::new(),
            abort: CancellationToken::new(),
        }
    }

    /// Spawns `task`, which runs until it ends or the host aborts its tasks.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.spawn_in(Span::none(), Box::pin(task))
    }

    /// Spawns `task` within `span`.
    // Boxed by the caller: a turn's future is several kilobytes, and wrapping and spawning would
    // move it several times.
    fn spawn_in(&self, span: Span, task: Pin<Box<impl Future<Output = ()> + Send + 'static>>) -> JoinHandle<()> {
        let abort = self.abort.clone();
        let task = async move {
            tokio::select! {
                // In order: a task's view of subsystems that stop after the abort is of no account.
                biased;
                () = abort.cancelled() => {}
                () = task => {}
            }
        };
        self.tasks.spawn(task.instrument(span))
    }

    /// Waits for the end of a turn, however long it takes, and returns its outcome.
    pub(crate) async fn outcome(&self, turn: &TurnId) -> Result<TurnOutcome, TurnError> {
        if let Some(live) = self.find(turn) {
            return match live.ended().await {
                TurnState::Ended(outcome) => Self::end_of(&live, &outcome),
                TurnState::Working | TurnState::Parked(_) | TurnState::Halted => Err(TurnError::Halted),
            };
        }
        match self.journal.read(turn).await? {
            Some(run) => match run.state {
                RunState::Finished(outcome) => Ok(read_outcome(turn, &outcome)),
                _ => Err(TurnError::Interrupted(turn.clone())),
            },
            None => Err(TurnError::NotFound(turn.clone())),
        }
    }

    /// Checks that `by` may read and cancel the turn: it is its own, or `by` is an approver. The
    /// turn of another principal is as unknown as a turn that never was.
    pub(crate) async fn check_access(&self, turn: &TurnId, by: &Principal) -> Result<(), TurnError> {
        let has_access = match self.find(turn) {
            Some(live) => self.may_decide(by, live.request()),
            None => {
                let stored = self.journal.read(turn).await?;
                stored.is_some_and(|run| self.speaks_for(by, &run.accepted.key.principal))
            }
        };
        if has_access {
            Ok(())
        } else {
            Err(TurnError::NotFound(turn.clone()))
        }
    }

    /// Returns the end of a turn to a caller: the error of a turn layer to the first caller, else
    /// the outcome.
    fn end_of(live: &LiveTurn, outcome: &TurnOutcome) -> Result<TurnOutcome, TurnError> {
        match live.take_error() {
            Some(error) => Err(error.into()),
            None => Ok(outcome.clone()),
        }
    }

    /// Returns the turn, if this process works on it or it is parked here.
    pub(crate) fn find(&self, turn: &TurnId) -> Option<Arc<LiveTurn>> {
        self.live.find(turn)
    }

    /// Reports whether the journal of this host knows the turn. Outcomes are kept for a day.
    pub(crate) async fn knows(&self, turn: &TurnId) -> Result<bool, JournalError> {
        Ok(self.live.contains(turn) || self.journal.read(turn).await?.is_some())
    }

    /// Returns `true` while no turn works or waits for its session, and no model is asked.
    pub(crate) fn is_idle(&self) -> bool {
        self.agents.own.chat.is_idle() && !self.live.any_working()
    }

    /// Removes a turn, and notifies its waiting callers that this process no longer works on it.
    fn leave(&self, live: &LiveTurn) {
        self.live.remove(live.id());
        live.set_permit(None);
        live.publish(TurnState::Halted);
    }

    /// Aborts all turns and tasks. Nothing runs here afterwards; journaled turns resume at the next
    /// start.
    pub(crate) fn abort_all(&self) {
        self.halt.cancel();
        // Before the turns are listed: `register` inserts first and checks this token second, so a turn
        // that registers meanwhile is either in the list below or leaves by itself.
        self.abort.cancel();
        self.live.take_all().iter().for_each(|live| self.leave(live));
    }

    /// Adds a turn to the registry. A turn that arrives after the abort is halted at once.
    fn register(&self, live: &Arc<LiveTurn>) {
        self.live.insert(live);
        if self.abort.is_cancelled() {
            self.leave(live);
        }
    }

    /// Removes a turn from the registry and from the backlog; its end is in the journal.
    fn deregister(&self, live: &LiveTurn) {
        if live.request().is_user_message() {
            self.background.user_was_answered();
        }
        self.live.remove(live.id());
        live.set_permit(None);
    }
}

impl BackgroundHost for TurnEngine {
    fn chat(&self) -> &GuardedChat {
        &self.agents.own.chat
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn is_idle(&self) -> bool {
        Self::is_idle(self)
    }
}

/// Deserializes an outcome from the journal. An outcome that a newer version wrote in an unknown
/// form becomes a failure that states it.
fn read_outcome(turn: &TurnId, outcome: &RunBody) -> TurnOutcome {
    outcome
        .parse()
        .unwrap_or_else(|_| crate::turn::Turn::unreadable(turn.clone()))
}
