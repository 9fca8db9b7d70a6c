//! The state machine of a turn.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatMessage, ChatResponse, FinishReason, ModelTier, Provenance, Role, Spent, TurnSoFar};
use rockbot_core::context::Trust;
use rockbot_core::tool::{Effect, ToolErrorCode, ToolInvokeResponse};
use rockbot_core::turn::{Approval, BudgetLimit, FinishedCall, TurnRequest, TurnStatus};
use rockbot_core::{CallId, Timestamp, TurnId};

use super::call::{CallState, CallStatus};
use super::economy::Economy;
use super::event::{CancelReason, PolicySnapshot, Purpose, TurnEvent, TurnStep};
use super::policy::repeat::Repeats;
use super::policy::tasks::{self, TaskList};
use super::policy::{answer, approval, budget, ending, evaluate, identity, parallel, resume, steer};
use super::self_evaluation::SelfEvaluation;

/// A turn in progress.
///
/// [`Turn::on`] does three things, and a replay from a journal does the first and the last of them: it takes in
/// what happened, decides, and notes what it decided.
#[derive(Debug, Clone)]
pub struct Turn {
    pub(super) id: TurnId,
    pub(super) request: Arc<TurnRequest>,
    pub(super) policy: PolicySnapshot,
    pub(super) messages: Vec<Arc<ChatMessage>>,
    pub(super) phase: Phase,
    /// The calls of the model's last answer, in its order.
    pub(super) calls: Vec<CallState>,
    pub(super) finished: Vec<FinishedCall>,
    /// What other messages of the session said, until the model is asked next.
    pub(super) said: Vec<String>,
    pub(super) joined: Vec<TurnId>,
    pub(super) joined_texts: Vec<String>,
    /// Why the turn ends once the running calls have ended.
    pub(super) ending: Option<Ending>,
    /// What the answers of each tier cost.
    pub(super) spent: [Spent; 3],
    pub(super) model_calls: u32,
    pub(super) tool_calls: u32,
    pub(super) shape_attempts: u32,
    /// Whether the model had tools when the turn began.
    pub(super) has_tools: bool,
    /// What came of looking at the answer once more.
    pub(super) self_evaluation: SelfEvaluation,
    /// How long the conversation is, and what was left out of it.
    pub(super) economy: Economy,
    /// How many messages the turn began with.
    pub(super) begun_with: usize,
    /// What stands at the end of each request with tools.
    pub(super) reminder: Option<String>,
    /// How far what the model has read can be trusted.
    pub(super) content: Trust,
    /// What the model noted that it is to do.
    pub(super) tasks: TaskList,
    /// What its calls tell of how hard it is.
    pub(super) so_far: TurnSoFar,
    /// The tier that it went on with, when the selected one was too low.
    pub(super) escalated: Option<ModelTier>,
    pub(super) repeats: Repeats,
    /// How many rounds of calls in a row had one that took too long.
    pub(super) timed_out_rounds: u32,
    pub(super) resumes: u32,
    pub(super) halted: bool,
    pub(super) worked: Duration,
    pub(super) last: Timestamp,
}

/// What a turn waits for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    /// Its session to be free.
    Accepted,
    /// The model.
    Asking(Purpose),
    /// These calls.
    Calling(Vec<CallId>),
    /// A person, until then.
    Parked(Timestamp),
    /// Nothing any more.
    Done { status: TurnStatus, text: String },
}

/// Why a turn ends before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Limit(BudgetLimit),
    Cancelled(CancelReason),
}

impl Turn {
    /// A turn that was accepted at `at`. Its first event is [`TurnEvent::Started`].
    pub fn new(request: Arc<TurnRequest>, policy: PolicySnapshot, at: Timestamp) -> Self {
        Self::identified(request.turn_id(), request, policy, at)
    }

    /// The turn of `request`, whose id somebody has worked out already.
    pub(crate) fn identified(id: TurnId, request: Arc<TurnRequest>, policy: PolicySnapshot, at: Timestamp) -> Self {
        Self {
            id,
            request,
            policy,
            messages: Vec::new(),
            phase: Phase::Accepted,
            calls: Vec::new(),
            finished: Vec::new(),
            said: Vec::new(),
            joined: Vec::new(),
            joined_texts: Vec::new(),
            ending: None,
            spent: Default::default(),
            model_calls: 0,
            tool_calls: 0,
            shape_attempts: 0,
            has_tools: false,
            self_evaluation: SelfEvaluation::default(),
            economy: Economy::default(),
            begun_with: 0,
            reminder: None,
            content: Trust::Host,
            tasks: TaskList::default(),
            so_far: TurnSoFar::new(),
            escalated: None,
            repeats: Repeats::default(),
            timed_out_rounds: 0,
            resumes: 0,
            halted: false,
            worked: Duration::ZERO,
            last: at,
        }
    }

    /// Takes in what happened at `at` and decides what to do.
    pub fn on(&mut self, event: &TurnEvent, at: Timestamp) -> Vec<TurnStep> {
        self.take_in(event, at);
        let steps = self.economize(self.decide(event, at));
        self.note(&steps);
        steps
    }

    /// Takes in what happened and what was decided then, without deciding again: one record of a replay.
    pub fn replay(&mut self, event: &TurnEvent, steps: &[TurnStep], at: Timestamp) {
        self.take_in(event, at);
        self.note(steps);
    }

    fn take_in(&mut self, event: &TurnEvent, at: Timestamp) {
        self.count_work(event, at);
        match event {
            TurnEvent::Started {
                context,
                has_tools,
                tool_bytes,
                reminder,
                ..
            } => {
                self.messages = context.iter().cloned().map(Arc::new).collect();
                self.begun_with = context.len();
                self.content = context.iter().map(ChatMessage::trust).min().unwrap_or(Trust::Host);
                self.has_tools = *has_tools;
                self.note_tools(*tool_bytes);
                self.reminder.clone_from(reminder);
            }
            TurnEvent::ModelAnswered { response, facts } => self.take_answer(response, facts),
            TurnEvent::ToolStarted { call } => self.take_started(call),
            TurnEvent::ToolReturned(response) => self.take_returned(response),
            TurnEvent::ApprovalDecided(approval) => self.take_approval(approval),
            TurnEvent::ApprovalExpired => approval::expire(&mut self.calls, &self.request.session),
            TurnEvent::UserSaid { turn, text } => {
                self.said.push(text.clone());
                self.joined_texts.push(text.clone());
                self.joined.push(turn.clone());
            }
            TurnEvent::Escalated { tier } => self.escalated = Some(*tier),
            TurnEvent::BudgetSpent(limit) => self.ending = self.ending.or(Some(Ending::Limit(*limit))),
            TurnEvent::Cancelled(reason) => self.ending = Some(Ending::Cancelled(*reason)),
            TurnEvent::Resumed { recovered } => {
                self.resumes += u32::from(!std::mem::take(&mut self.halted));
                recovered.iter().for_each(|response| self.take_returned(response));
                self.calls.iter_mut().for_each(CallState::interrupt);
            }
            TurnEvent::Halted => self.halted = true,
            TurnEvent::Compacted { kept } => self.take_compacted(kept),
            TurnEvent::Gathered { message, .. } => self.take_gathered(message.as_ref()),
            TurnEvent::ModelFailed { overflow, .. } => {
                if let Some(overflow) = overflow {
                    self.note_overflow(overflow);
                }
            }
        }
    }

    fn decide(&self, event: &TurnEvent, at: Timestamp) -> Vec<TurnStep> {
        match (&self.phase, event) {
            (Phase::Done { .. }, _)
            | (
                _,
                TurnEvent::ToolStarted { .. }
                | TurnEvent::UserSaid { .. }
                | TurnEvent::Compacted { .. }
                | TurnEvent::Gathered { .. }
                | TurnEvent::Escalated { .. }
                | TurnEvent::Halted,
            ) => {
                vec![]
            }
            (_, TurnEvent::Resumed { .. }) => self.go_on(at),
            (_, TurnEvent::Started { .. }) => vec![self.ask()],
            (Phase::Asking(purpose), TurnEvent::ModelAnswered { response, .. }) => self.answered(purpose, response, at),
            (Phase::Asking(purpose), TurnEvent::ModelFailed { kind, message, .. }) => {
                let shorter = self.shorter(purpose, *kind, message);
                shorter.unwrap_or_else(|| self.failed(purpose, *kind, message))
            }
            (Phase::Parked(_), _) => self.call_or_park(at),
            (Phase::Calling(group), _) if self.is_running(group) => vec![],
            (Phase::Accepted | Phase::Asking(_) | Phase::Calling(_), _) => self.after_calls(),
        }
    }

    fn note(&mut self, steps: &[TurnStep]) {
        for step in steps {
            match step {
                TurnStep::AskModel(purpose) => {
                    self.close_calls();
                    self.model_calls += 1;
                    if !self.asks_again() {
                        self.note_question(purpose);
                    }
                }
                TurnStep::Compact(compaction) => {
                    self.close_calls();
                    self.note_compaction(compaction);
                }
                TurnStep::CallTools(group) => {
                    self.tool_calls += u32::try_from(group.len()).unwrap_or(u32::MAX);
                    self.phase = Phase::Calling(group.clone());
                }
                TurnStep::AwaitApproval { until, .. } => self.phase = Phase::Parked(*until),
                TurnStep::Emit(_) | TurnStep::Count(_) | TurnStep::Gather(_) => {}
                TurnStep::Finish { status, text } => {
                    self.close_calls();
                    self.phase = Phase::Done {
                        status: status.clone(),
                        text: text.clone().unwrap_or_else(|| self.last_answer()),
                    };
                }
            }
        }
    }

    fn note_question(&mut self, purpose: &Purpose) {
        self.messages.extend(steer::messages(&mut self.said).map(Arc::new));
        self.messages.extend(answer::instruction(purpose).map(Arc::new));
        self.shape_attempts += u32::from(matches!(purpose, Purpose::Shape { .. }));
        let answer = matches!(purpose, Purpose::FollowUp { .. }).then(|| self.last_answer());
        self.self_evaluation.note(purpose, answer, self.worked_calls());
        self.phase = Phase::Asking(purpose.clone());
    }

    /// After the process ended: what was being done is done again, unless it happened too often.
    fn go_on(&self, at: Timestamp) -> Vec<TurnStep> {
        if self.resumes > self.policy.max_resumes {
            return vec![resume::give_up(self.resumes, &self.finished_calls())];
        }
        match &self.phase {
            Phase::Asking(purpose) => {
                let ask = TurnStep::AskModel(purpose.clone());
                self.pending_compaction().into_iter().chain([ask]).collect()
            }
            Phase::Calling(group) => {
                let left = resume::unfinished(group, &self.calls);
                if left.is_empty() || self.ending.is_some() {
                    self.after_calls()
                } else {
                    vec![TurnStep::CallTools(left)]
                }
            }
            Phase::Parked(_) => self.call_or_park(at),
            Phase::Accepted | Phase::Done { .. } => vec![],
        }
    }

    /// Runs the calls of the model's answer, or first asks a person.
    pub(super) fn call_or_park(&self, at: Timestamp) -> Vec<TurnStep> {
        if self.ending.is_some() {
            return self.after_calls();
        }
        let asks = approval::asks(&self.id, &self.calls);
        if asks.is_empty() {
            return self.after_calls();
        }
        let until = match self.phase {
            Phase::Parked(until) => until,
            _ => at.after(self.policy.approval_expiry),
        };
        vec![TurnStep::AwaitApproval { asks, until }]
    }

    /// The next group of calls, or what follows when all have ended.
    fn after_calls(&self) -> Vec<TurnStep> {
        if let Some(ending) = self.ending {
            return self.end(ending);
        }
        let group = parallel::next_group(&self.calls);
        if group.is_empty() {
            return match self.timed_out_rounds + u32::from(self.round_timed_out()) {
                0..ending::TIMED_OUT_ROUNDS => vec![self.ask()],
                _ => self.forced(ending::tools_timed_out(&self.finished_calls())),
            };
        }
        let budget = &self.policy.budget;
        if let Some(limit) = budget::tool_calls(budget, self.tool_calls, group.len()) {
            return self.end(Ending::Limit(limit));
        }
        vec![TurnStep::CallTools(group)]
    }

    /// Ends the turn before its answer.
    fn end(&self, ending: Ending) -> Vec<TurnStep> {
        match (ending, &self.phase) {
            (Ending::Cancelled(reason), _) => vec![ending::cancelled(reason, &self.finished_calls())],
            (Ending::Limit(_), _) if self.self_evaluation.original.is_some() => vec![self.original()],
            (Ending::Limit(limit), Phase::Asking(Purpose::Conclude(_))) => {
                vec![ending::without_model(limit, &self.finished_calls())]
            }
            (Ending::Limit(limit), _) => vec![TurnStep::AskModel(Purpose::Conclude(limit))],
        }
    }

    /// Asks the model for the next step, unless a limit is reached.
    pub(super) fn ask(&self) -> TurnStep {
        TurnStep::AskModel(self.limit().map_or(Purpose::Answer, Purpose::Conclude))
    }

    /// The limit that forbids asking the model once more.
    pub(super) fn limit(&self) -> Option<BudgetLimit> {
        budget::model_calls(&self.policy.budget, self.model_calls, &self.spent())
    }

    fn take_answer(&mut self, response: &ChatResponse, facts: &[super::CallFacts]) {
        let is_out_of_band = matches!(&self.phase, Phase::Asking(purpose) if purpose.is_out_of_band());
        self.spent[self.tier_of(is_out_of_band) as usize] += Spent::on(response);
        if is_out_of_band {
            return;
        }
        self.note_answer(response.usage);
        // The arguments of an answer that did not finish may be cut.
        let complete = !matches!(response.finish, FinishReason::Length | FinishReason::ContentFilter);
        let may_call = complete && matches!(&self.phase, Phase::Asking(purpose) if purpose.has_tools());
        let wanted = if may_call { response.tool_calls.as_slice() } else { &[] };
        let calls = identity::unique(wanted, &self.finished);
        self.calls = calls
            .zip(facts)
            .map(|(call, facts)| CallState::new(call, *facts))
            .collect();
        self.note_whole();
        let message = ChatMessage {
            tool_calls: self.calls.iter().map(|state| state.call.clone()).collect(),
            ..response.to_message()
        };
        self.messages.push(Arc::new(message));
    }

    /// Takes in what the agent knows, just before what the host said last.
    fn take_gathered(&mut self, message: Option<&ChatMessage>) {
        if let Some(message) = message {
            self.content = self.content.min(message.trust());
            let last = self.messages.len().saturating_sub(1);
            self.messages.insert(last, Arc::new(message.clone()));
        }
    }

    fn take_started(&mut self, id: &CallId) {
        if let Some(state) = self.find(id)
            && let CallStatus::Waiting { granted } = state.status
        {
            state.status = CallStatus::Started { granted };
        }
    }

    fn take_returned(&mut self, response: &ToolInvokeResponse) {
        if let Some(state) = self.find(&response.tool_call_id)
            && !state.is_finished()
        {
            state.status = CallStatus::Finished(response.clone());
        }
    }

    fn take_approval(&mut self, decision: &Approval) {
        let session = self.request.session.clone();
        if let Some(state) = self.find(&decision.call) {
            approval::decide(state, decision, &session);
        }
    }

    /// Moves the results of the last answer's calls into the conversation, in the order of the calls. A call
    /// that has not run by now never will.
    fn close_calls(&mut self) {
        if !self.calls.is_empty() {
            self.timed_out_rounds = match self.round_timed_out() {
                true => self.timed_out_rounds + 1,
                false => 0,
            };
        }
        for mut state in self.calls.drain(..) {
            if let Some(ended) = state.finished() {
                let changes = state.facts.effect == Effect::Mutating && evaluate::is_work(&ended);
                self.so_far = self.so_far.with_call(changes, ended.is_error);
                if self.policy.task_list && !ended.is_error {
                    self.tasks.take_in(&state.call);
                }
                self.finished.push(ended);
            }
            if !state.is_finished() {
                state.refuse(ToolErrorCode::Cancelled, ending::NOT_RUN, &self.request.session);
            }
            if let CallStatus::Finished(mut response) = state.status {
                let note = self.repeats.note(&state.call, &response.content);
                if let Some(note) = note.filter(|_| self.policy.nudges.on_repeated_calls) {
                    response.content.push_str(note);
                }
                let mut message = ChatMessage::tool(response.tool_call_id, response.content);
                if self.policy.task_list && tasks::has_tool(state.call.name.as_str()) {
                    message
                        .content
                        .iter_mut()
                        .for_each(|part| part.provenance = Provenance::HOST);
                }
                self.content = self.content.min(message.trust());
                self.messages.push(Arc::new(message));
            }
        }
    }

    /// Whether one of the last answer's calls took too long.
    fn round_timed_out(&self) -> bool {
        self.calls.iter().any(CallState::timed_out)
    }

    /// Counts the time since the last event as work, unless the turn was parked or its process was gone.
    fn count_work(&mut self, event: &TurnEvent, at: Timestamp) {
        let idle =
            matches!(self.phase, Phase::Accepted | Phase::Parked(_)) || matches!(event, TurnEvent::Resumed { .. });
        if !idle {
            self.worked += at.since(self.last);
        }
        self.last = at;
    }

    /// What the model said last.
    pub(crate) fn last_answer(&self) -> String {
        let said = self
            .messages
            .iter()
            .rev()
            .find(|message| message.role == Role::Assistant);
        said.map(|message| message.text().into_owned()).unwrap_or_default()
    }

    /// Whether calls of `group` are to end first. Once the turn ends, those that have not begun never will.
    fn is_running(&self, group: &[CallId]) -> bool {
        let waits = |call: &CallState| call.is_started() || (self.ending.is_none() && !call.is_finished());
        self.calls
            .iter()
            .any(|call| group.contains(&call.call.id) && waits(call))
    }

    fn find(&mut self, id: &CallId) -> Option<&mut CallState> {
        self.calls.iter_mut().find(|state| state.call.id == *id)
    }

    pub(super) fn finished_calls(&self) -> Vec<FinishedCall> {
        let current = self.calls.iter().filter_map(CallState::finished);
        self.finished.iter().cloned().chain(current).collect()
    }
}
