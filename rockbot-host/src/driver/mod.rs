//! The driver: the only code that performs what a turn decides.
//!
//! It feeds events to the [`Turn`], writes every event and decision to the journal before it acts on them,
//! asks the model and calls tools. It decides nothing itself.

mod ask;
mod call;
mod context_sources;
mod context_windows;
mod large;
mod offload;
mod output_filter;

use std::collections::VecDeque;
use std::sync::Arc;

use rockbot_core::chat::Ledger;
use rockbot_core::tool::ToolView;
use rockbot_core::turn::{BudgetLimit, Claim, JournalError, RunRecord, TurnJournal, TurnProgress};
use rockbot_core::{CallContext, Clock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use context_sources::ContextBudget;
pub(crate) use context_sources::{Gathered, Knowledge};
pub(crate) use context_windows::Windows;
pub(crate) use large::LargeResults;

use crate::answer::AnswerFilter;
use crate::chat::GuardedChat;
use crate::engine::LiveTurn;
use crate::routing::TierRouter;
use crate::tool::ToolDispatcher;
use crate::turn::{Turn, TurnEvent, TurnStep, record};

/// What performing steps needs.
#[derive(Debug)]
pub(crate) struct TurnDriver {
    pub(crate) chat: GuardedChat,
    pub(crate) tools: ToolDispatcher,
    pub(crate) large: LargeResults,
    pub(crate) windows: Windows,
    pub(crate) knowledge: Knowledge,
    /// Who chooses the tier of turns whose message names none; without it that is the balanced one.
    pub(crate) router: Option<TierRouter>,
    /// What answers cost.
    pub(crate) ledger: Ledger,
    /// What looks at answers before people see them, if anything does.
    pub(crate) filter: Option<Arc<dyn AnswerFilter>>,
    pub(crate) journal: Arc<dyn TurnJournal>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Fires when the host stops: turns end at their next journal point and are resumed later.
    pub(crate) halt: CancellationToken,
}

/// What a drive begins with.
pub(crate) enum First {
    /// Something that happened.
    Event(TurnEvent),
    /// Steps that stand in the journal already.
    Steps(Vec<TurnStep>),
}

impl TurnDriver {
    /// Drives `turn` until it ends, parks, or the host stops.
    pub(crate) async fn drive(
        &self,
        turn: &mut Turn,
        claim: &Claim,
        live: &LiveTurn,
        first: First,
    ) -> Result<(), JournalError> {
        let mut drive = Drive::new(self, turn, claim, live);
        match first {
            First::Event(event) => drive.feed(&event)?,
            First::Steps(steps) => drive.steps.extend(steps),
        }
        while let Some(step) = drive.steps.pop_front() {
            if self.halt.is_cancelled() {
                break;
            }
            drive.perform(step).await?;
        }
        if self.halt.is_cancelled() && drive.turn.outcome().is_none() {
            drive.note(&TurnEvent::Halted, false)?;
        }
        drive.flush().await
    }
}

/// One drive of a turn.
struct Drive<'a> {
    driver: &'a TurnDriver,
    turn: &'a mut Turn,
    claim: &'a Claim,
    live: &'a LiveTurn,
    /// Of what ends with the turn's time.
    cx: CallContext,
    /// Of mutating calls, which may outlast the turn's time.
    lasting: CallContext,
    /// The tools as the model sees them: within a drive they are only added to.
    view: ToolView,
    deadline: Instant,
    steps: VecDeque<TurnStep>,
    /// What happened and is not in the journal yet. It is written before anything is done about it.
    unwritten: Vec<RunRecord>,
}

impl<'a> Drive<'a> {
    fn new(driver: &'a TurnDriver, turn: &'a mut Turn, claim: &'a Claim, live: &'a LiveTurn) -> Self {
        let deadline = Instant::now() + turn.time_left();
        let view = driver.tools.view(turn.policy().task_list);
        let lasting = context(turn, live);
        Self {
            driver,
            turn,
            claim,
            live,
            cx: lasting.clone().with_deadline(deadline),
            lasting,
            view,
            deadline,
            steps: VecDeque::new(),
            unwritten: Vec::new(),
        }
    }

    async fn perform(&mut self, step: TurnStep) -> Result<(), JournalError> {
        match step {
            TurnStep::AskModel(purpose) => self.ask(&purpose).await,
            TurnStep::Compact(_) => self.compact().await,
            TurnStep::Gather(about) => self.recall(about).await,
            TurnStep::CallTools(group) => self.call(&group).await,
            TurnStep::Count(mark) => {
                metrics::counter!(mark.name()).increment(1);
                Ok(())
            }
            TurnStep::Emit(note) => {
                self.live.progress().send(|| TurnProgress::Note(note));
                Ok(())
            }
            // The drive is over. Whoever decides is asked once the turn waits.
            TurnStep::AwaitApproval { .. } | TurnStep::Finish { .. } => Ok(()),
        }
    }

    /// Why nothing new may begin, if anything forbids it.
    fn stopped(&self) -> Option<TurnEvent> {
        if self.live.stop().is_cancelled() {
            return Some(TurnEvent::Cancelled(self.live.reason()));
        }
        let late = Instant::now() >= self.deadline;
        late.then_some(TurnEvent::BudgetSpent(BudgetLimit::WallClock))
    }

    /// Tells the turn what happened, after what other messages said meanwhile: unless it will never ask the model
    /// what they want, then they find out and become turns of their own.
    fn feed(&mut self, event: &TurnEvent) -> Result<(), JournalError> {
        if !self.turn.can_join_before(event) {
            self.live.close_mailbox();
        }
        for said in self.live.take_said() {
            self.note(
                &TurnEvent::UserSaid {
                    turn: said.turn,
                    text: said.text,
                },
                false,
            )?;
            // The sender may have stopped waiting; its message counts all the same.
            let _ = said.taken.send(());
        }
        self.note(event, false)
    }

    /// Feeds one event; `critical` when a mutating call is about to start.
    fn note(&mut self, event: &TurnEvent, critical: bool) -> Result<(), JournalError> {
        let at = self.driver.clock.now();
        let steps = self.turn.on(event, at);
        self.unwritten.push(record(event, &steps, at, critical)?);
        self.steps.extend(steps);
        Ok(())
    }

    /// Writes what happened, all in one write.
    async fn flush(&mut self) -> Result<(), JournalError> {
        if !self.unwritten.is_empty() {
            self.driver.journal.append(self.claim, &self.unwritten).await?;
            self.unwritten.clear();
        }
        Ok(())
    }
}

/// The context of everything that is done for `turn`.
pub(crate) fn context(turn: &Turn, live: &LiveTurn) -> CallContext {
    let request = turn.request();
    let cx = CallContext::new(&request.session)
        .with_principal(request.principal.clone())
        .with_turn(turn.id().clone())
        .with_origin(request.origin)
        .with_priority(request.priority)
        .with_trust(request.trust)
        .with_cancellation(live.stop().clone())
        .with_progress(live.progress().clone());
    let cx = match &request.parent {
        Some((parent, depth)) => cx.with_parent(parent.clone(), *depth),
        None => cx,
    };
    match &request.trace {
        Some(trace) => cx.with_trace(trace),
        None => cx,
    }
}
