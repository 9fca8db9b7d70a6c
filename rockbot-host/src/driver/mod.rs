//! The driver: the only code that performs the decisions of a turn.
//!
//! It feeds events to the [`Turn`], writes each event and the decision that followed to the
//! journal before it acts on them, asks the model and calls tools. It decides nothing itself. One
//! file performs one kind of step:
//!
//! | File | Step |
//! |---|---|
//! | `ask.rs` | Ask the model, with `output_filter.rs` around what users see of the answer. |
//! | `call.rs` | Run a group of tool calls, with `large_results.rs` around their results. |
//! | `context_sources.rs` | Gather what the agent knows that may help. |
//! | `answer_tool.rs` | Take a tool call as the answer in a schema. |
//! | `offload.rs` | Store what the turn leaves out of its conversation. |
//! | `hooks/` | Ask the hooks of the host's program. |
//! | `reports.rs` | Pass the reports of model and tool calls to the turn's listener. |
//! | `recover.rs` | Ask tools for the results of calls that a crash interrupted. |

mod answer_tool;
mod ask;
mod call;
mod context_sources;
mod hooks;
mod large_results;
mod offload;
mod output_filter;
mod recover;
mod reports;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use rockbot_core::chat::{Ledger, RequestCache};
use rockbot_core::support::deadline_after;
use rockbot_core::tool::ToolView;
use rockbot_core::trust::Label;
use rockbot_core::turn::{
    BudgetLimit, Claim, DelegatedTurn, Delegation, JournalError, RunRecord, TurnJournal, TurnProgress,
};
use rockbot_core::{CallContext, CallId, Clock, Timestamp};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use answer_tool::AnswerTool;
pub use context_sources::ContextBudget;
pub(crate) use context_sources::{ContextSources, GatheredContext};
pub(crate) use hooks::{Hooks, InputCheck};
pub(crate) use large_results::LargeResults;
pub(crate) use output_filter::OutputFilter;

use crate::agents::{HostAgent, HostAgents};
use crate::live::LiveTurn;
use crate::media_library::{MediaLibrary, ResolvedMessages};
use crate::routing::TierRouter;
use crate::tool::{ReadMessages, TextIndexes, ToolDispatcher};
use crate::turn::{CancelReason, Turn, TurnEvent, TurnStep, record};

/// The parts that performing steps needs. The engine owns them and shares them with its driver.
#[derive(Debug)]
pub(crate) struct TurnDriver {
    pub(crate) agents: Arc<HostAgents>,
    pub(crate) tools: Arc<ToolDispatcher>,
    pub(crate) large: LargeResults,
    pub(crate) media: Arc<MediaLibrary>,
    pub(crate) sources: Arc<ContextSources>,
    pub(crate) router: Option<Arc<TierRouter>>,
    pub(crate) ledger: Ledger,
    pub(crate) output: OutputFilter,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) journal: Arc<dyn TurnJournal>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Fires when the host stops, before `halt`.
    pub(crate) closing: CancellationToken,
    /// Fires when the time of running turns is over: they end at their next journal point and are
    /// resumed later.
    pub(crate) halt: CancellationToken,
}

/// The start of a drive.
pub(crate) enum DriveStart {
    /// An event, which the turn has not seen yet.
    Event(TurnEvent),
    /// Steps whose decision is in the journal already.
    Steps(Vec<TurnStep>),
}

impl TurnDriver {
    /// Drives `turn` until it ends, parks, or the host stops.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be written. The driver does not act upon an event
    /// before it is written.
    pub(crate) async fn drive(
        &self,
        turn: &mut Turn,
        claim: &Claim,
        live: &LiveTurn,
        start: DriveStart,
    ) -> Result<(), JournalError> {
        let mut drive = Drive::new(self, turn, claim, live);
        match start {
            DriveStart::Event(event) => drive.feed(event),
            DriveStart::Steps(steps) => drive.steps.extend(steps),
        }
        while let Some(step) = drive.steps.pop_front() {
            if self.halt.is_cancelled() {
                break;
            }
            drive.perform(step).await?;
        }
        if self.closing.is_cancelled() && drive.turn.outcome().is_none() {
            // An orderly stop: the next resume does not count as an interruption.
            drive.note(TurnEvent::Halted, false);
        }
        drive.flush().await
    }
}

/// The state of one drive: the turn, its surroundings, and the steps and records that are still
/// open.
struct Drive<'a> {
    driver: &'a TurnDriver,
    agent: &'a HostAgent,
    turn: &'a mut Turn,
    claim: &'a Claim,
    live: &'a LiveTurn,
    /// The context of work that ends with the turn's deadline.
    cx: CallContext,
    /// The context of mutating calls, which may outlast the turn's deadline.
    lasting: CallContext,
    /// The tools as the model sees them. Within a drive they are only added to, which keeps prompts
    /// cached.
    view: ToolView,
    /// Number of active groups whose tools the view has.
    viewed_groups: usize,
    /// The tool that the model calls to give its answer, if the turn's mode of output is
    /// `OutputMode::Tool`.
    answer_tool: Option<AnswerTool>,
    deadline: Instant,
    /// The label of the contexts.
    label: Label,
    /// The indexes of the long texts of others, made for the first call that is examined.
    indexes: OnceLock<TextIndexes>,
    /// The messages with the bytes of their media.
    resolved: ResolvedMessages,
    /// The cache of the turn's requests. Out-of-band questions repeat none of them, and have no part
    /// in it.
    requests: RequestCache,
    steps: VecDeque<TurnStep>,
    /// The beginning of the drive, by both clocks: its records are dated by the time since then, so
    /// that a jump of the wall clock does not count as work.
    began: (Timestamp, Instant),
    /// The accounts of the calls that run turns of other agents.
    delegations: Vec<(CallId, Delegation)>,
    /// The records of events that are not in the journal yet. They are written before the driver acts
    /// on them; until then a crash loses nothing but pure work.
    unwritten: Vec<RunRecord>,
    /// `true` once an event of the drive is the turn's cancellation.
    is_cancelled: bool,
}

impl<'a> Drive<'a> {
    fn new(driver: &'a TurnDriver, turn: &'a mut Turn, claim: &'a Claim, live: &'a LiveTurn) -> Self {
        let deadline = deadline_after(Instant::now(), turn.time_left());
        let tools = turn.request().tools.as_ref();
        let view = driver.tools.view(tools, turn.policy().task_list, turn.active_tools());
        let viewed_groups = turn.active_tools().len();
        let lasting = context(turn, live);
        let answer_tool = AnswerTool::of(turn);
        Self {
            driver,
            agent: driver.agents.of(turn.request()),
            turn,
            claim,
            live,
            cx: lasting.clone().with_deadline(deadline),
            lasting,
            view,
            viewed_groups,
            answer_tool,
            deadline,
            label: Label::HOST,
            indexes: OnceLock::new(),
            resolved: ResolvedMessages::default(),
            requests: RequestCache::default(),
            steps: VecDeque::new(),
            began: (driver.clock.now(), Instant::now()),
            delegations: Vec::new(),
            unwritten: Vec::new(),
            is_cancelled: false,
        }
    }

    /// Labels the contexts of calls with the label of everything that the model has read. The label
    /// only gets more restrictive within a turn: everything that was read taints all later calls.
    fn relabel(&mut self) {
        let label = self.turn.label();
        if *label != self.label {
            self.label.clone_from(label);
            let message = self.turn.own_words().filter(|_| label.is_untrusted());
            for cx in [&mut self.cx, &mut self.lasting] {
                let labelled = cx.clone().with_label(label);
                *cx = match &message {
                    Some(message) => labelled.with_user_message(message.clone()),
                    None => labelled,
                };
            }
        }
    }

    /// Returns what the model has read, for the guard of calls.
    fn read_messages(&self) -> ReadMessages {
        ReadMessages::of(self.turn, self.indexes.get_or_init(TextIndexes::default))
    }

    async fn perform(&mut self, step: TurnStep) -> Result<(), JournalError> {
        match step {
            TurnStep::AskModel(purpose) => self.ask(&purpose).await,
            // Boxed: every turn's future would have room for it otherwise, and few hosts have hooks.
            TurnStep::Consult(about) => Box::pin(self.consult(&about)).await,
            TurnStep::Validate { text, .. } => Box::pin(self.validate(text)).await,
            TurnStep::Compact(_) => self.compact().await,
            TurnStep::Gather(about) => {
                self.recall(about).await;
                Ok(())
            }
            TurnStep::CallTools(group) => self.call(&group).await,
            TurnStep::Count(counter) => {
                metrics::counter!(counter.name()).increment(1);
                Ok(())
            }
            TurnStep::RefuseRepeats(calls) => {
                tracing::info!(turn = %self.turn.id(), calls = calls.len(), "the model repeats its calls; they are refused");
                Ok(())
            }
            TurnStep::Emit(note) => {
                self.live.progress().send(|| TurnProgress::Note(note));
                Ok(())
            }
            // The drive is over. The person who decides is asked by the engine, once the turn is parked.
            TurnStep::AwaitApproval { .. } | TurnStep::Finish { .. } => Ok(()),
        }
    }

    /// Returns the event that forbids any further work, if there is one: a cancellation, or the
    /// deadline.
    fn stop_event(&self) -> Option<TurnEvent> {
        if self.live.cancellation().is_cancelled() {
            return Some(TurnEvent::Cancelled(self.live.cancel_reason()));
        }
        let is_late = Instant::now() >= self.deadline;
        is_late.then_some(TurnEvent::BudgetSpent(BudgetLimit::WallClock))
    }

    /// Feeds `event` to the turn, after the messages that arrived for it meanwhile.
    ///
    /// When the turn will not ask the model again after the event, the mailbox is closed first, and
    /// messages that still wait become turns of their own.
    fn feed(&mut self, event: TurnEvent) {
        if !self.turn.can_join_before(&event) {
            self.live.mailbox().close();
        }
        for message in self.live.mailbox().take() {
            let turn = message.turn;
            let text = message.content;
            self.note(TurnEvent::UserSaid { turn, text }, false);
            // Fails when the sender was dropped since; its message counts all the same.
            let _ = message.joined.send(());
        }
        self.raise_budget(&event);
        self.note(event, false);
    }

    /// Takes more of the rest of the calling turn's budget, if this turn runs short.
    fn raise_budget(&mut self, event: &TurnEvent) {
        let delegated = self.turn.request().extensions.get::<DelegatedTurn>().cloned();
        let delegated = delegated.filter(|_| self.turn.runs_short_after(event));
        if let Some(budget) = delegated.and_then(|delegated| delegated.raise()) {
            self.note(TurnEvent::BudgetRaised { budget }, false);
        }
    }

    /// Feeds one event and keeps its record for the next flush. `is_critical` marks a mutating call
    /// that is about to start: a journal that syncs waits for the disk then.
    fn note(&mut self, event: TurnEvent, is_critical: bool) {
        let (began, started) = self.began;
        let at = began.after(started.elapsed());
        let steps = self.turn.on(&event, at);
        self.is_cancelled |= matches!(event, TurnEvent::Cancelled(_));
        self.steps.extend(steps.iter().cloned());
        self.unwritten.push(record(event, steps, at, is_critical));
    }

    /// Writes the open records to the journal, all in one write. Does nothing when there are no
    /// records.
    async fn flush(&mut self) -> Result<(), JournalError> {
        if !self.unwritten.is_empty() {
            let asked = self.driver.journal.append(self.claim, &self.unwritten).await?;
            self.unwritten.clear();
            if asked.cancel {
                self.live.cancel(CancelReason::Caller);
            }
            if self.is_cancelled {
                self.live.set_cancellation_recorded();
            }
        }
        Ok(())
    }
}

/// Returns the context of all work that is done for `turn`, without a deadline.
fn context(turn: &Turn, live: &LiveTurn) -> CallContext {
    let request = turn.request();
    let cx = CallContext::new(&request.session)
        .with_principal(request.principal.clone())
        .with_turn(turn.id().clone())
        .with_origin(request.origin)
        .with_priority(request.priority)
        .with_trust(request.trust)
        .with_informing(request.is_informing)
        .with_cancellation(live.cancellation().clone());
    let cx = if request.extensions.is_empty() {
        cx
    } else {
        cx.with_extensions(&request.extensions)
    };
    let cx = match &request.tools {
        Some(tools) => cx.with_extension(tools.clone()),
        None => cx,
    };
    let cx = match request.own_namespace() {
        Some(namespace) => cx.with_extension(namespace),
        None => cx,
    };
    let cx = match &request.parent {
        Some(parent) => cx.with_parent(parent.turn.clone(), parent.depth),
        None => cx,
    };
    match live.trace() {
        Some(trace) => cx.with_trace(trace),
        None => cx,
    }
}
