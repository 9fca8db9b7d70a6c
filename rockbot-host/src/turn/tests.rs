//! The machine through random lives: every conversation has the form that providers accept, and
//! every replay leads to the same turn.

use crate::turn::history::HistoryEdit;
use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use rockbot_core::chat::{
    ChatErrorKind, ChatMessage, ChatResponse, FinishReason, MicroUsd, ModelTier, Overflow, Role, ToolCall,
};
use rockbot_core::context::Origin;
use rockbot_core::store::StorePath;
use rockbot_core::tool::{Effect, ToolInvokeResponse};
use rockbot_core::turn::{
    ApprovalRequest, Budget, BudgetLimit, LoopDecision, RunBody, RunRecord, RunState, StoredRun, TurnOutcome,
    TurnRequest, TurnStatus,
};
use rockbot_core::{CallId, Timestamp, TurnId};

use super::policy::{outcome_unknown, uncertain};
use super::*;

/// The next event of a random life, whatever the turn waits for.
#[derive(Debug, Clone)]
enum Chance {
    Answer,
    Empty,
    Cut,
    Calls(Vec<(Effect, bool)>),
    Fail,
    /// The model refuses the request as too long; it may say how long one may be.
    Overflow(Option<u64>),
    Cancel,
    /// Before calls that were to run have begun.
    CancelFirst,
    Spend,
    Say,
    /// A judge finds something missing, or something more to do; as an answer it announces a step.
    More,
    /// A loop policy adds a message.
    Note,
    /// A loop policy sends the answer back.
    SendBack,
    /// A loop policy ends the turn.
    End,
    /// A validator complains.
    Complain,
    /// A history processor edits the conversation.
    Edit,
}

fn chance() -> impl Strategy<Value = Chance> {
    let effect = prop_oneof![Just(Effect::Pure), Just(Effect::Idempotent), Just(Effect::Mutating)];
    let calls = prop::collection::vec((effect, prop::bool::weighted(0.2)), 1..5);
    prop_oneof![
        2 => Just(Chance::Answer),
        1 => Just(Chance::Empty),
        1 => Just(Chance::Cut),
        6 => calls.prop_map(Chance::Calls),
        1 => Just(Chance::Fail),
        1 => prop::option::of(100..2_000_u64).prop_map(Chance::Overflow),
        1 => Just(Chance::Cancel),
        1 => Just(Chance::CancelFirst),
        1 => Just(Chance::Spend),
        2 => Just(Chance::Say),
        2 => Just(Chance::More),
        1 => Just(Chance::Note),
        2 => Just(Chance::SendBack),
        1 => Just(Chance::End),
        2 => Just(Chance::Complain),
        1 => Just(Chance::Edit),
    ]
}

/// The settings of a turn, with or without hooks.
fn policy(has_hooks: bool) -> PolicySnapshot {
    let budget = Budget::default()
        .with_max_model_calls(8)
        .with_max_tool_calls(8)
        .with_max_cost(MicroUsd(6));
    PolicySnapshot {
        budget,
        tier: Some(ModelTier::Low),
        evaluation: Evaluation {
            max_completion_reprompts: 2,
            max_follow_up_passes: 1,
        },
        economy: ContextEconomy::default()
            .with_watermark(1_000)
            .with_max_result_len(3_000),
        hooks: HookLimits {
            has_policies: has_hooks,
            has_validators: has_hooks,
            ..HookLimits::default()
        },
        ..PolicySnapshot::default()
    }
}

fn accepted(has_hooks: bool) -> AcceptedTurn {
    AcceptedTurn {
        version: FORMAT_VERSION,
        request: Arc::new(TurnRequest::new("s", "m1", "go")),
        policy: policy(has_hooks),
    }
}

fn at(seconds: usize) -> Timestamp {
    Timestamp::from_millis(seconds as u64 * 1_000)
}

/// A turn, its journal, and the events to come.
struct Life {
    turn: Turn,
    records: Vec<RunRecord>,
    chances: VecDeque<Chance>,
    /// The turn after each record.
    moments: Vec<Turn>,
    begun: Vec<CallId>,
}

impl Life {
    fn new(turn: Turn, chances: Vec<Chance>) -> Self {
        Self {
            turn,
            records: Vec::new(),
            chances: chances.into(),
            moments: Vec::new(),
            begun: Vec::new(),
        }
    }

    fn feed(&mut self, event: &TurnEvent) -> Vec<TurnStep> {
        let now = at(self.records.len());
        let before = request_bytes(&self.turn);
        let steps = self.turn.on(event, now);
        if let TurnEvent::Compacted { .. } = event {
            assert!(request_bytes(&self.turn) < before, "{steps:?}");
            let asked = self.turn.messages().iter().any(|message| message.text() == "go");
            assert!(asked, "the request stays");
        }
        self.records.push(record(event.clone(), steps.clone(), now, false));
        self.moments.push(self.turn.clone());
        steps
    }

    /// Feeds `first` and performs the steps to the end, as a driver would.
    fn live(&mut self, first: &TurnEvent) -> TurnOutcome {
        let mut steps: VecDeque<_> = self.feed(first).into();
        while let Some(step) = steps.pop_front() {
            for event in self.perform(&step) {
                steps.extend(self.feed(&event));
            }
        }
        let outcome = self.turn.outcome().expect("a turn without a step has ended");
        assert!(outcome.is_final() && !outcome.text.is_empty(), "{outcome:?}");
        outcome
    }

    fn perform(&mut self, step: &TurnStep) -> Vec<TurnEvent> {
        match step {
            TurnStep::AskModel(purpose) => {
                check_conversation(self.turn.messages());
                self.edit(purpose);
                if self
                    .turn
                    .may_escalate(purpose)
                    .is_some_and(|(tier, _)| tier == ModelTier::Low)
                {
                    let tier = ModelTier::Balanced;
                    assert_eq!(self.feed(&TurnEvent::Escalated { tier }), []);
                }
                self.ask()
            }
            TurnStep::Consult(about) => self.consult(about),
            TurnStep::Validate { .. } => vec![self.validate()],
            TurnStep::Gather(about) => vec![TurnEvent::Gathered {
                message: Some(ChatMessage::user(about)),
                recalled: Vec::new(),
                active_tools: vec!["gathered".into()],
            }],
            TurnStep::Compact(_) => vec![TurnEvent::Compacted { kept: self.keep() }],
            TurnStep::CallTools(group) => self.call(group),
            TurnStep::AwaitApproval { asks, .. } => self.decide(asks),
            TurnStep::Emit(_) | TurnStep::Count(_) | TurnStep::RefuseRepeats(_) | TurnStep::Finish { .. } => Vec::new(),
        }
    }

    /// Lets the loop policies decide by chance, where a chance speaks to them.
    fn consult(&mut self, about: &Consultation) -> Vec<TurnEvent> {
        if let Consultation::BeforeRequest(_) = about {
            check_conversation(self.turn.messages());
        }
        let message = || rockbot_core::content::Content::from("mind this");
        let (added, decision) = match self.chances.front() {
            Some(Chance::Note) => (vec![message()], LoopDecision::Continue),
            Some(Chance::SendBack) => (Vec::new(), LoopDecision::AskAgain(message())),
            Some(Chance::End) => (Vec::new(), LoopDecision::Answer(message())),
            Some(Chance::CancelFirst) => return vec![TurnEvent::Cancelled(CancelReason::Caller)],
            _ => (Vec::new(), LoopDecision::Continue),
        };
        if !added.is_empty() || decision != LoopDecision::Continue {
            self.chances.pop_front();
        }
        vec![TurnEvent::Consulted {
            added,
            decision,
            by: None,
            failed: Vec::new(),
        }]
    }

    /// Lets a history processor replace the second message, if it is of the user.
    fn edit(&mut self, purpose: &Purpose) {
        let messages = self.turn.messages();
        let may = self.turn.may_be_edited(purpose) && messages[1].role == Role::User && messages[1].text() != "go";
        if may
            && self
                .chances
                .pop_front_if(|chance| matches!(chance, Chance::Edit))
                .is_some()
        {
            let added = HistoryEdit::Add(Arc::new(ChatMessage::user("short")));
            let edits = vec![HistoryEdit::Keep(0, 1), added, HistoryEdit::Keep(2, messages.len() - 2)];
            assert_eq!(self.feed(&TurnEvent::HistoryEdited { edits }), []);
            check_conversation(self.turn.messages());
        }
    }

    fn validate(&mut self) -> TurnEvent {
        let verdict = match self.chances.pop_front_if(|chance| matches!(chance, Chance::Complain)) {
            Some(_) => Validation::Complained("it is wrong".to_owned()),
            None => Validation::Accepted,
        };
        TurnEvent::Validated { verdict, by: None }
    }

    /// Stores every second original.
    fn keep(&self) -> Vec<OffloadedMessage> {
        let kept = self
            .turn
            .offload_candidates()
            .into_iter()
            .step_by(2)
            .map(|candidate| OffloadedMessage {
                key: StorePath::new(&format!("stash/s/{}", candidate.call.id)).unwrap(),
                call: candidate.call.id,
            });
        kept.collect()
    }

    fn ask(&mut self) -> Vec<TurnEvent> {
        let text = |text: &str, finish| TurnEvent::ModelAnswered {
            response: ChatResponse::text(text).with_finish(finish).with_cost(MicroUsd(1)),
            facts: Vec::new(),
            origins: Vec::new(),
        };
        match self.chances.pop_front().unwrap_or(Chance::Answer) {
            Chance::Answer | Chance::Note | Chance::SendBack | Chance::End | Chance::Complain | Chance::Edit => {
                vec![text("done", FinishReason::Stop)]
            }
            Chance::Empty => vec![text("", FinishReason::Stop)],
            Chance::Cut => vec![answered(&[(Effect::Pure, false)], FinishReason::Length)],
            Chance::Calls(calls) => vec![answered(&calls, FinishReason::ToolCalls)],
            Chance::Fail => vec![TurnEvent::ModelFailed {
                kind: ChatErrorKind::Overloaded,
                message: "busy".to_owned(),
                overflow: None,
            }],
            Chance::Overflow(limit) => vec![TurnEvent::ModelFailed {
                kind: ChatErrorKind::ContextOverflow,
                message: "too long".to_owned(),
                overflow: Some(Overflow::new(limit, None)),
            }],
            Chance::Cancel | Chance::CancelFirst => vec![TurnEvent::Cancelled(CancelReason::Caller)],
            Chance::Spend => vec![TurnEvent::BudgetSpent(BudgetLimit::WallClock)],
            Chance::More => {
                let verdict = r#"{"complete": false, "reason": "x", "hasFollowUps": true, "prompt": "y"}:"#;
                vec![text(verdict, FinishReason::Stop)]
            }
            Chance::Say => vec![said(), text("done", FinishReason::Stop)],
        }
    }

    fn call(&mut self, group: &[CallId]) -> Vec<TurnEvent> {
        let calls: Vec<_> = self
            .turn
            .calls()
            .iter()
            .filter(|call| group.contains(&call.call.id))
            .collect();
        assert_eq!(calls.len(), group.len(), "only calls of the last answer run");
        assert!(calls.iter().all(|call| !call.is_finished() && !call.is_undecided()));
        let alone = calls.iter().any(|call| call.facts.effect == Effect::Mutating);
        assert!(!alone || calls.len() == 1, "a mutating call runs alone");
        if let Some(Chance::CancelFirst) = self.chances.front() {
            return vec![TurnEvent::Cancelled(CancelReason::Caller)];
        }
        self.begun.extend(group.iter().cloned());
        let started = group.iter().map(|call| TurnEvent::ToolStarted { call: call.clone() });
        // The last one returns first.
        let returned = group.iter().rev().map(|call| TurnEvent::ToolReturned(response(call)));
        let between = match self.chances.front() {
            Some(Chance::Cancel) => Some(TurnEvent::Cancelled(CancelReason::Superseded)),
            Some(Chance::Spend) => Some(TurnEvent::BudgetSpent(BudgetLimit::WallClock)),
            Some(Chance::Say) => Some(said()),
            _ => None,
        };
        if between.is_some() {
            self.chances.pop_front();
        }
        started.chain(between).chain(returned).collect()
    }

    fn decide(&mut self, asks: &[ApprovalRequest]) -> Vec<TurnEvent> {
        match self.chances.pop_front() {
            Some(Chance::Fail) => vec![TurnEvent::ApprovalExpired],
            Some(Chance::Cancel) => vec![TurnEvent::Cancelled(CancelReason::Caller)],
            Some(Chance::Empty) => vec![TurnEvent::ApprovalDecided(asks[0].deny("no"))],
            _ => vec![TurnEvent::ApprovalDecided(asks[0].approve())],
        }
    }
}

fn said() -> TurnEvent {
    TurnEvent::UserSaid {
        turn: TurnId::from("another"),
        text: "and this".into(),
    }
}

/// An answer with calls that all have the same id, as some servers send them.
fn answered(calls: &[(Effect, bool)], finish: FinishReason) -> TurnEvent {
    let call = |_: &(Effect, bool)| ToolCall::new("0", "act", "{}");
    let facts = |(effect, needs_approval): &(Effect, bool)| CallFacts {
        effect: *effect,
        needs_approval: *needs_approval,
        own_output: false,
        keeps_result_whole: false,
        delegates: false,
        runs_turn: false,
    };
    TurnEvent::ModelAnswered {
        response: ChatResponse::calls(calls.iter().map(call))
            .with_finish(finish)
            .with_cost(MicroUsd(1)),
        facts: calls.iter().map(facts).collect(),
        origins: Vec::new(),
    }
}

/// Every third result is long.
fn response(call: &CallId) -> ToolInvokeResponse {
    let digits = call.as_str().bytes().map(usize::from).sum::<usize>();
    let times = if digits.is_multiple_of(3) { 4_000 } else { 1 };
    ToolInvokeResponse::new(call.clone(), "act", "ok".repeat(times))
}

fn started() -> TurnEvent {
    TurnEvent::Started {
        revised: None,
        heard: Vec::new(),
        context: vec![
            ChatMessage::system("be kind"),
            ChatMessage::user("hello".repeat(100)),
            ChatMessage::assistant("how do you do?".repeat(100)),
            ChatMessage::user("go"),
        ],
        has_tools: true,
        tool_bytes: 500,
        recalled: Vec::new(),
        reminder: None,
        input: None,
        active_tools: Vec::new(),
        endorsed: Vec::new(),
    }
}

fn request_bytes(turn: &Turn) -> usize {
    let messages = turn.messages_for(&Purpose::Answer);
    messages
        .iter()
        .map(|message| serde_json::to_string(message).unwrap().len())
        .sum()
}

/// Every call has its result right after it, in call order, before any other message: providers
/// insist on it.
fn check_conversation(messages: &[Arc<ChatMessage>]) {
    let mut open: VecDeque<&CallId> = VecDeque::new();
    for message in messages {
        if message.role == Role::Tool {
            assert_eq!(message.tool_call_id.as_ref(), open.pop_front(), "{messages:#?}");
        } else {
            assert!(open.is_empty(), "{open:?} have no result in {messages:#?}");
            open = message.tool_calls.iter().map(|call| &call.id).collect();
        }
    }
    assert!(open.is_empty(), "{open:?} have no result in {messages:#?}");
}

fn stored(has_hooks: bool, records: &[RunRecord]) -> StoredRun {
    let accepted = accepted(has_hooks).into_run(at(0));
    StoredRun::new(accepted, records.to_vec(), RunState::Unfinished)
}

proptest! {
    #[test]
    fn a_replay_of_any_part_of_a_journal_leads_to_the_turn_as_it_was(
        chances in prop::collection::vec(chance(), 0..12),
        hooks in any::<bool>(),
    ) {
        let mut life = Life::new(Turn::new(accepted(hooks).request, policy(hooks), at(0)), chances);
        life.live(&started());
        for (index, moment) in life.moments.iter().enumerate() {
            let replayed = Turn::from_run(&stored(hooks, &life.records[..=index])).unwrap();
            prop_assert_eq!(format!("{replayed:?}"), format!("{moment:?}"));
        }
    }

    #[test]
    fn a_resume_from_any_part_of_a_journal_ends_and_repeats_nothing(
        chances in prop::collection::vec(chance(), 0..12),
        hooks in any::<bool>(),
    ) {
        let mut life = Life::new(Turn::new(accepted(hooks).request, policy(hooks), at(0)), chances.clone());
        life.live(&started());
        for count in 1..=life.records.len() {
            let turn = Turn::from_run(&stored(hooks, &life.records[..count])).unwrap();
            if turn.outcome().is_some() {
                continue;
            }
            let ended = |call: &&CallState| call.is_finished() || (call.is_started() && call.facts.effect == Effect::Mutating);
            let ended: Vec<_> = turn.calls().iter().filter(ended).map(|call| call.call.id.clone()).collect();
            let recovered = uncertain(turn.calls()).map(|call| outcome_unknown(call.request(&"s".into())));
            let resumed = TurnEvent::Resumed { recovered: recovered.collect(), active_tools: Vec::new(), delegated: Vec::new() };
            let mut later = Life::new(turn, chances.iter().rev().cloned().collect());
            later.live(&resumed);
            let cancelled = life.records[..count].iter().any(|record| record.body.to_json().unwrap().get().contains("cancelled"));
            prop_assert!(!cancelled || later.begun.is_empty(), "{:?} ran although the turn was cancelled", later.begun);
            prop_assert!(ended.iter().all(|call| !later.begun.contains(call)), "{ended:?} ran again: {:?}", later.begun);
        }
    }
}

#[test]
fn a_replay_repeats_decisions_that_this_version_would_not_make() {
    // Another version ended this turn although the model had called a tool.
    let steps = vec![TurnStep::Finish {
        status: TurnStatus::Answered,
        text: Some("decided long ago".to_owned()),
    }];
    let event = answered(&[(Effect::Mutating, false)], FinishReason::ToolCalls);
    let first = record(started(), vec![TurnStep::AskModel(Purpose::Answer)], at(0), false);
    let second = record(event, steps, at(1), false);
    let turn = Turn::from_run(&stored(false, &[first, second])).unwrap();
    assert_eq!(turn.outcome().unwrap().text, "decided long ago");
}

#[test]
fn a_judge_that_an_older_version_asked_about_a_scheduled_turn_is_heard() {
    let request = TurnRequest::new("s", "m1", "go").with_origin(Origin::Scheduled);
    let mut run = stored(false, &[]);
    run.accepted.body = RunBody::new(Arc::new(AcceptedTurn {
        request: Arc::new(request),
        ..accepted(false)
    }));
    let says = |text: &str| TurnEvent::ModelAnswered {
        response: ChatResponse::text(text).with_cost(MicroUsd(1)),
        facts: Vec::new(),
        origins: Vec::new(),
    };
    let judge = TurnStep::AskModel(Purpose::Evaluate(Trigger::PromiseWithoutAction));
    run.records = vec![
        record(started(), vec![TurnStep::AskModel(Purpose::Answer)], at(0), false),
        record(says("I'll do it right away."), vec![judge], at(1), false),
    ];
    let mut turn = Turn::from_run(&run).unwrap();
    let verdict = says(r#"{"complete": false, "reason": "Nothing was done."}"#);
    let reason = "Nothing was done.".to_owned();
    let again = TurnStep::AskModel(Purpose::Continue { reason });
    assert_eq!(turn.on(&verdict, at(2)).last(), Some(&again));
    // This version asks no judge about what follows.
    let end = TurnStep::finish_with_answer(TurnStatus::Answered);
    assert_eq!(turn.on(&says("I'll do it soon."), at(3)), [end]);
}

#[test]
fn a_journal_of_another_version_or_form_is_not_read() {
    let mut run = stored(false, &[]);
    run.accepted.body = RunBody::new(Arc::new(AcceptedTurn {
        version: FORMAT_VERSION + 1,
        ..accepted(false)
    }));
    assert!(Turn::from_run(&run).is_err());
    let mut unknown = record(started(), Vec::new(), at(0), false);
    unknown.body = RunBody::new(Arc::new(serde_json::json!({"event": {"from_the_future": {}}})));
    assert!(Turn::from_run(&stored(false, &[unknown])).is_err());
}

#[test]
fn a_decision_about_a_call_that_does_not_wait_changes_nothing() {
    let mut turn = Turn::new(accepted(false).request, policy(false), at(0));
    turn.on(&started(), at(0));
    turn.on(&answered(&[(Effect::Mutating, true)], FinishReason::ToolCalls), at(1));
    let Some(TurnStatus::Parked(asks)) = turn.outcome().map(|outcome| outcome.status) else {
        panic!("the turn waits")
    };
    turn.on(&TurnEvent::ApprovalDecided(asks[0].deny("no")), at(2));
    let before = format!("{:?}", turn.calls());
    turn.on(&TurnEvent::ApprovalDecided(asks[0].approve()), at(3));
    assert_eq!(format!("{:?}", turn.calls()), before);
    let told = turn.messages().last().unwrap();
    assert!(told.role == Role::Tool && told.text().contains("refused"), "{told:?}");
}
