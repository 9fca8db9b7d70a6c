//! [`Turn`]: the state of one turn, and the transitions between its phases.
//!
//! This file has the state, the entry points and the dispatch of events and steps. The children
//! have the transitions by concern: `apply` (events), `calls` (tool calls and approvals),
//! `activation` (groups of tools), `self_evaluation` (an answer in words), `consultation` and
//! `validation` (loop policies and output validators of the host's program), `resume` (after the
//! end of a process), and `context`, `economy` and `offload_registry` (the conversation, and its
//! length). `view` has the state that the rest of the host reads.

mod activation;
mod apply;
mod calls;
mod consultation;
mod context;
mod economy;
mod offload_registry;
mod resume;
mod self_evaluation;
mod validation;
mod view;

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::{ChatMessage, ModelTier, Role, Spent};
use rockbot_core::content::{Content, ContentPart};
use rockbot_core::store::EndorsedValue;
use rockbot_core::trust::Label;
use rockbot_core::turn::{BudgetLimit, FinishedCall, TurnFailure, TurnRequest, TurnSoFar, TurnStatus};
use rockbot_core::{CallId, Timestamp, TurnId};

use super::call::CallState;
use super::event::{CancelReason, TurnEvent};
use super::policy::repeat::Repeats;
use super::policy::tasks::TaskList;
use super::policy::{EvaluationProgress, answer, budget, consult, ending, steer};
use super::settings::PolicySnapshot;
use super::step::{Consultation, Nudge, Purpose, TurnStep};
use activation::Activation;
use consultation::Consultations;
use economy::Economy;

pub(crate) use economy::OffloadCandidate;
pub(crate) use view::from_sender;

/// The source of the texts of errors that a model's server reports.
const SERVER: &str = "model server";

/// A turn in progress.
///
/// [`Turn::on`] has three parts: it applies the event, decides the next steps, and applies these
/// steps to its own state. A replay from a journal does the first and the last part only, with
/// the steps that were recorded. So a newer version, whose policies would decide otherwise,
/// continues with a turn of an older version.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    id: TurnId,
    request: Arc<TurnRequest>,
    /// `true` when the request has another content than its user sent.
    has_other_input: bool,
    policy: PolicySnapshot,
    messages: Vec<Arc<ChatMessage>>,
    phase: Phase,
    /// The calls of the model's last answer, in its order.
    calls: Vec<CallState>,
    finished: Vec<FinishedCall>,
    /// Content of messages that joined the turn, until the next question to the model.
    unread: Vec<Content>,
    joined: Vec<TurnId>,
    joined_content: Vec<Content>,
    consultations: Consultations,
    /// The images and files of the model's answers, without the images and files of answers that
    /// were taken back or replaced.
    answer_media: Vec<ContentPart>,
    /// Number of answers that output validators sent back.
    corrections: u32,
    /// The reason to end the turn as soon as the running calls have ended.
    end_reason: Option<EndReason>,
    /// The cost of the answers of each tier.
    spent: [Spent; 3],
    model_calls: u32,
    tool_calls: u32,
    shape_attempts: u32,
    /// `true` from a question to the model until its answer or its failure.
    has_open_question: bool,
    /// `true` from an edit of the conversation for a question until its answer or its failure.
    has_edits: bool,
    /// `true` when the model had tools at the start of the turn.
    has_tools: bool,
    evaluation: EvaluationProgress,
    /// `true` once a call has delegated work to another agent.
    has_delegated: bool,
    economy: Economy,
    /// Number of messages at the start of the turn, without the messages that compactions removed.
    context_len: usize,
    /// The groups of tools that are active.
    activation: Activation,
    /// The values that the user has endorsed for the conversation.
    endorsed: Vec<EndorsedValue>,
    /// The text at the end of each request with tools.
    reminder: Option<String>,
    /// The label of everything that the model has read.
    label: Label,
    /// The model's own task list.
    tasks: TaskList,
    /// Numbers of calls; the tier selector tells from them how hard the turn is.
    activity: TurnSoFar,
    /// The tier of the turn after it was raised.
    escalated: Option<ModelTier>,
    repeats: Repeats,
    /// Number of calls of the last round that ended.
    round_len: usize,
    /// Number of consecutive rounds of calls with at least one time-out.
    timed_out_rounds: u32,
    resumes: u32,
    halted: bool,
    worked: Duration,
    last_event_at: Timestamp,
    /// `true` when the turn was parked at its last event: until the next event it may wait for its
    /// session.
    was_parked: bool,
}

/// The phase of a turn: the work or the event that it waits for.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// The turn waits for its session.
    Accepted,
    /// The turn waits for the model.
    Asking(Purpose),
    /// The turn waits for the loop policies of the host's program.
    Consulting(Consultation),
    /// The turn waits for the output validators, to end with this status and text.
    Validating { status: TurnStatus, text: Option<String> },
    /// The turn waits for these calls.
    Calling(Vec<CallId>),
    /// The turn waits for a user's decision, until the approval expires.
    Parked(Timestamp),
    /// The turn has ended.
    Done { status: TurnStatus, text: String },
}

/// Returns the images and files of `content`.
fn media_of(content: &Content) -> impl Iterator<Item = ContentPart> {
    content.parts().iter().filter(|part| part.as_media().is_some()).cloned()
}

/// The reason why a turn ends before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndReason {
    Limit(BudgetLimit),
    Cancelled(CancelReason),
}

impl Turn {
    /// Creates a turn that was accepted at `at`. Its first event is [`TurnEvent::Started`].
    pub(crate) fn new(request: Arc<TurnRequest>, policy: PolicySnapshot, at: Timestamp) -> Self {
        Self::identified(request.turn_id(), request, policy, at)
    }

    /// Creates the turn of `request`, whose id the caller has computed already.
    ///
    /// The id is a digest of the request, so computing it twice would cost as much as the rest of the
    /// acceptance.
    pub(crate) fn identified(id: TurnId, request: Arc<TurnRequest>, policy: PolicySnapshot, at: Timestamp) -> Self {
        Self {
            id,
            request,
            has_other_input: false,
            policy,
            messages: Vec::new(),
            phase: Phase::Accepted,
            calls: Vec::new(),
            finished: Vec::new(),
            unread: Vec::new(),
            joined: Vec::new(),
            joined_content: Vec::new(),
            consultations: Consultations::default(),
            answer_media: Vec::new(),
            corrections: 0,
            end_reason: None,
            spent: Default::default(),
            model_calls: 0,
            tool_calls: 0,
            shape_attempts: 0,
            has_open_question: false,
            has_edits: false,
            has_tools: false,
            evaluation: EvaluationProgress::default(),
            has_delegated: false,
            economy: Economy::default(),
            context_len: 0,
            activation: Activation::default(),
            endorsed: Vec::new(),
            reminder: None,
            label: Label::HOST,
            tasks: TaskList::default(),
            activity: TurnSoFar::new(),
            escalated: None,
            repeats: Repeats::default(),
            round_len: 0,
            timed_out_rounds: 0,
            resumes: 0,
            halted: false,
            worked: Duration::ZERO,
            was_parked: false,
            last_event_at: at,
        }
    }

    /// Applies an event that happened at `at`, and returns the steps to perform.
    ///
    /// The result depends on the earlier events and on the arguments only.
    pub(crate) fn on(&mut self, event: &TurnEvent, at: Timestamp) -> Vec<TurnStep> {
        self.apply(event, at);
        let steps = self.validate_before_end(event, self.decide(event, at));
        let steps = self.consult_before_request(event, steps);
        // Last of all policies: whichever asked the model, its request must fit into the context window.
        let steps = self.economize(steps);
        self.apply_steps(&steps);
        steps
    }

    /// Applies a recorded event and the steps that were recorded with it, without deciding again.
    ///
    /// The state afterwards is the state that [`Turn::on`] left when it recorded them.
    pub(crate) fn replay(&mut self, event: &TurnEvent, steps: &[TurnStep], at: Timestamp) {
        self.apply(event, at);
        self.apply_steps(steps);
    }

    /// Decides the next steps. Never runs in a replay.
    fn decide(&self, event: &TurnEvent, at: Timestamp) -> Vec<TurnStep> {
        match (&self.phase, event) {
            // In any phase: the event that could not be recorded may be the turn's own end.
            (_, TurnEvent::Failed { failure, text }) => {
                vec![TurnStep::finish_with(TurnStatus::Failed(failure.clone()), text)]
            }
            // An event that only adds to the state: the step that the turn waits for is still being performed.
            (Phase::Done { .. }, _)
            | (
                _,
                TurnEvent::ToolStarted { .. }
                | TurnEvent::Delegated(_)
                | TurnEvent::BudgetRaised { .. }
                | TurnEvent::Activated { .. }
                | TurnEvent::UserSaid { .. }
                | TurnEvent::Compacted { .. }
                | TurnEvent::Gathered { .. }
                | TurnEvent::Escalated { .. }
                | TurnEvent::ModelCutOff { .. }
                | TurnEvent::HistoryEdited { .. }
                | TurnEvent::ToolsTold { .. }
                | TurnEvent::Halted,
            ) => vec![],
            (_, TurnEvent::Resumed { .. }) => self.resume(at),
            (_, TurnEvent::Started { .. }) => vec![self.ask()],
            (_, TurnEvent::InputRefused { text, error, .. }) => vec![ending::refused(text, error.is_some())],
            (Phase::Asking(purpose), TurnEvent::ModelAnswered { response, .. }) => self
                .consult_after_answer(purpose)
                .unwrap_or_else(|| self.answered(purpose, response, at)),
            (Phase::Consulting(about), TurnEvent::Consulted { decision, .. }) => self.consulted(about, decision, at),
            (Phase::Validating { status, text }, TurnEvent::Validated { verdict, .. }) => {
                self.validated(status, text.as_ref(), verdict)
            }
            // A late event of the work before: only a reason to end changes the phase of the turn.
            (Phase::Consulting(_) | Phase::Validating { .. }, _) if self.end_reason.is_none() => vec![],
            (Phase::Asking(purpose), TurnEvent::ModelFailed { kind, message, .. }) => {
                // A request that was too long is worth one shorter attempt before the failure counts.
                let shorter = self.shorter(purpose, *kind, message);
                shorter.unwrap_or_else(|| self.failed(purpose, *kind, message))
            }
            (Phase::Parked(_), _) => self.call_or_park(at),
            (Phase::Calling(group), _) if self.is_running(group) => vec![],
            _ => self.after_calls(),
        }
    }

    /// Applies decided steps to the state. Runs in a replay, too, with the recorded steps.
    fn apply_steps(&mut self, steps: &[TurnStep]) {
        for step in steps {
            match step {
                TurnStep::AskModel(purpose) => {
                    self.close_calls(consult::not_run(purpose));
                    self.model_calls += u32::from(!self.policy.is_program);
                    // After an overflow the same question is asked again: its instruction is in the conversation.
                    if !self.repeats_question() {
                        self.apply_question(purpose);
                    }
                }
                TurnStep::Consult(about) => self.apply_consultation(about),
                TurnStep::Validate { status, text } => {
                    let status = status.clone();
                    let text = text.clone();
                    self.phase = Phase::Validating { status, text };
                }
                TurnStep::Compact(compaction) => {
                    self.close_calls(ending::NOT_RUN);
                    self.apply_compaction(compaction);
                }
                TurnStep::CallTools(group) => {
                    self.tool_calls += u32::try_from(group.len()).unwrap_or(u32::MAX);
                    self.phase = Phase::Calling(group.clone());
                }
                TurnStep::RefuseRepeats(repeated) => repeated.iter().for_each(|call| self.refuse_repeat(call)),
                TurnStep::AwaitApproval { until, .. } => self.phase = Phase::Parked(*until),
                TurnStep::Emit(_) | TurnStep::Count(_) | TurnStep::Gather(_) => {}
                TurnStep::Finish { status, text } => {
                    self.close_calls(ending::NOT_RUN);
                    if let TurnStatus::Failed(TurnFailure::Model(_)) = status {
                        // The reply quotes the error of the model's server.
                        self.label.join(&Label::untrusted(SERVER));
                    }
                    self.phase = Phase::Done {
                        status: status.clone(),
                        text: text.clone().unwrap_or_else(|| self.last_answer()),
                    };
                }
            }
        }
    }

    /// Adds the messages that joined, the messages of loop policies, and the instruction of the
    /// purpose, to the conversation.
    fn apply_question(&mut self, purpose: &Purpose) {
        let is_open = std::mem::replace(&mut self.has_open_question, true);
        if is_open && matches!(&self.phase, Phase::Asking(asked) if asked == purpose) {
            // Asked again after a crash: the conversation has the messages that the model is to
            // react to.
            return;
        }
        if matches!(purpose, Purpose::Retry(Nudge::HallucinatedCall)) {
            self.forget_answer();
        }
        self.messages.extend(steer::messages(&mut self.unread).map(Arc::new));
        self.messages.extend(self.consultations.messages().map(Arc::new));
        // The instruction comes last: the model must react to it.
        self.messages.extend(answer::instruction(purpose).map(Arc::new));
        self.shape_attempts += u32::from(matches!(purpose, Purpose::Shape { .. }));
        self.corrections += u32::from(matches!(purpose, Purpose::Correct { .. }));
        self.consultations.apply(purpose);
        if purpose.retracts() {
            self.answer_media.clear();
        }
        let is_followed = matches!(purpose, Purpose::FollowUp { .. } | Purpose::AssessFollowUp);
        let answer = is_followed.then(|| self.last_answer());
        self.evaluation.apply(purpose, answer, &self.finished);
        self.phase = Phase::Asking(purpose.clone());
    }

    /// Removes the last answer from the conversation: a model that reads its own claim keeps to it.
    fn forget_answer(&mut self) {
        let is_own = self.messages.len() > self.context_len;
        let is_answer = |message: &Arc<ChatMessage>| message.role == Role::Assistant && message.tool_calls.is_empty();
        if is_own && self.messages.last().is_some_and(is_answer) {
            self.messages.pop();
        }
    }

    /// Ends the turn before its answer.
    fn end_early(&self, reason: EndReason) -> Vec<TurnStep> {
        match (reason, &self.phase) {
            (EndReason::Cancelled(reason), _) => vec![ending::cancelled(reason, &self.finished_calls())],
            // A complete answer exists; only the follow-up is cut short.
            (EndReason::Limit(_), _) if self.evaluation.has_first_answer() => vec![self.evaluation.finish_with_first()],
            // The last answer itself ran into a limit, such as wall-clock time: do not ask for it again.
            (EndReason::Limit(limit), Phase::Asking(Purpose::Conclude(_))) => {
                vec![ending::without_model(limit, &self.finished_calls())]
            }
            (EndReason::Limit(limit), _) => vec![self.conclude(limit)],
        }
    }

    /// Asks the model for the next step, or for a last answer when a limit is reached.
    fn ask(&self) -> TurnStep {
        match self.limit() {
            Some(limit) => self.conclude(limit),
            None => TurnStep::AskModel(Purpose::Answer),
        }
    }

    /// Asks the model for a last answer, unless nothing is known of its price: the limit in money may
    /// be spent many times over.
    fn conclude(&self, limit: BudgetLimit) -> TurnStep {
        match budget::unknown_price(&self.policy.budget, &self.spent()) {
            Some(unknown) => ending::without_model(unknown, &self.finished_calls()),
            None => TurnStep::AskModel(Purpose::Conclude(limit)),
        }
    }

    /// Returns the limit that forbids another question to the model.
    fn limit(&self) -> Option<BudgetLimit> {
        budget::model_calls(&self.policy.budget, self.model_calls, &self.spent())
    }
}
