//! Tool calls that wait for a person.

use std::path::Path;
use std::time::Duration;

use futures_util::FutureExt as _;
use rockbot_core::Digest;
use rockbot_core::chat::ChatResponse;
use rockbot_core::testing::{ManualClock, ScriptedModel, mock_tool};
use rockbot_core::tool::tool;
use rockbot_core::turn::{
    Approval, ApprovalRequest, Budget, InMemoryTurnJournal, TurnOutcome, TurnProgress, TurnRequest, TurnStatus,
};
use rockbot_host::{Agent, AgentHost, AgentHostBuilder, Stores, TurnError, TurnPolicies};
use serde_json::json;

use crate::support::journal::{Around, Counting};
use crate::support::{Notes, collect, ending, host_of, noting_tool, results, settle};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn paying() -> ScriptedModel {
    ScriptedModel::new().calls("pay", json!({"n": 7}))
}

/// A host with a tool `pay` that needs approval, and what it paid.
fn paying_host(model: &ScriptedModel) -> (AgentHostBuilder, Notes) {
    let (pay, paid) = noting_tool("pay");
    (host_of(model).tool(pay.needs_approval()), paid)
}

async fn park(agent: &Agent) -> (TurnOutcome, Vec<ApprovalRequest>) {
    let outcome = agent.run(TurnRequest::new("s", "m1", "pay")).await.unwrap();
    let TurnStatus::Parked(asks) = outcome.status.clone() else {
        panic!("the turn should wait, got {outcome:?}")
    };
    assert_eq!(agent.approvals(), asks);
    (outcome, asks)
}

#[tokio::test]
async fn a_granted_call_runs_with_exactly_the_arguments_that_were_shown() {
    let model = paying().says("paid");
    let (host, paid) = paying_host(&model);
    let host = host.build().unwrap();
    let agent = host.agent();
    let (parked, asks) = park(agent).await;
    assert_eq!(parked.text, "Waiting for approval of `pay`.");
    assert_eq!(
        (asks[0].tool.as_str(), asks[0].arguments.as_str()),
        ("pay", r#"{"n":7}"#)
    );
    assert!(paid.all().is_empty());

    agent.decide(asks[0].approve()).await.unwrap();
    let outcome = agent.outcome(&parked.turn).await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "paid"));
    assert_eq!(paid.all(), ["pay 7"]);
    assert!(agent.approvals().is_empty());
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_the_model_reads_why() {
    let model = paying().says("not paid");
    let (host, paid) = paying_host(&model);
    let host = host.build().unwrap();
    let (parked, asks) = park(host.agent()).await;
    host.agent().decide(asks[0].deny("too dear")).await.unwrap();
    assert_eq!(host.agent().outcome(&parked.turn).await.unwrap().text, "not paid");
    assert!(paid.all().is_empty());
    assert_eq!(
        results(&model.requests()[1]),
        ["call_1: the user refused this call: too dear. Do not try it again; go on without it."]
    );
}

#[tokio::test]
async fn a_decision_about_anything_else_is_refused_and_changes_nothing() {
    let model = paying().says("paid");
    let (host, paid) = paying_host(&model);
    let host = host.build().unwrap();
    let (parked, asks) = park(host.agent()).await;
    let right = asks[0].approve();
    let changes: [fn(&mut Approval); 3] = [
        |approval| approval.args_hash = Digest::of(["pay", r#"{"n":8}"#]),
        |approval| approval.call = "call_2".into(),
        |approval| approval.turn = "another".into(),
    ];
    for change in changes {
        let mut other = right.clone();
        change(&mut other);
        let refused = host.agent().decide(other).await;
        assert!(
            matches!(refused, Err(TurnError::NoSuchApproval { .. })),
            "got {refused:?}"
        );
    }
    assert_eq!(host.agent().approvals(), asks);
    host.agent().decide(right.clone()).await.unwrap();
    host.agent().outcome(&parked.turn).await.unwrap();
    let late = host.agent().decide(right).await;
    assert!(matches!(late, Err(TurnError::NoSuchApproval { .. })), "got {late:?}");
    assert_eq!(paid.all(), ["pay 7"]);
}

#[tokio::test]
async fn a_turn_with_several_questions_goes_on_after_the_last_decision_in_call_order() {
    let calls = [
        ("pay", json!({"n": 1})),
        ("look", json!({"n": 2})),
        ("pay", json!({"n": 3})),
        ("pay", json!({"n": 4})),
    ];
    let model = ScriptedModel::new().calls_all(calls).says("done");
    let (host, paid) = paying_host(&model);
    let (look, looked) = noting_tool("look");
    let host = host.tool(look).build().unwrap();
    let (parked, asks) = park(host.agent()).await;
    assert_eq!(asks.len(), 3);
    host.agent().decide(asks[2].approve()).await.unwrap();
    host.agent().decide(asks[0].deny("no")).await.unwrap();
    settle().await;
    assert!(looked.all().is_empty(), "nothing runs before the last decision");
    assert_eq!(host.agent().approvals(), [asks[1].clone()]);
    host.agent().decide(asks[1].approve()).await.unwrap();
    host.agent().outcome(&parked.turn).await.unwrap();
    assert_eq!(
        (paid.all(), looked.all()),
        (vec!["pay 3".to_owned(), "pay 4".to_owned()], vec!["look 2".to_owned()])
    );
    let told = results(&model.requests()[1]);
    assert!(told[0].starts_with("call_1: the user refused"), "{told:?}");
    assert_eq!(
        told[1..],
        ["call_2: look is done", "call_3: pay is done", "call_4: pay is done"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn decisions_made_at_the_same_time_all_count() {
    for _ in 0..50 {
        let calls: Vec<_> = (0..4).map(|n| ("pay", json!({"n": n}))).collect();
        let model = ScriptedModel::new().calls_all(calls).says("done");
        let (host, paid) = paying_host(&model);
        let host = host.build().unwrap();
        let (parked, asks) = park(host.agent()).await;
        let deciding: Vec<_> = asks
            .into_iter()
            .map(|ask| {
                let agent = host.agent().clone();
                tokio::spawn(async move { agent.decide(ask.approve()).await })
            })
            .collect();
        for decided in deciding {
            decided.await.unwrap().unwrap();
        }
        host.agent().outcome(&parked.turn).await.unwrap();
        assert_eq!(paid.all().len(), 4);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_listener_that_is_asked_can_decide_at_once() {
    for _ in 0..200 {
        let (host, paid) = paying_host(&paying().says("paid"));
        let host = host.build().unwrap();
        let mut turn = host.agent().stream("s", "pay");
        let mut text = String::new();
        while let Some(report) = turn.next().await {
            match report.unwrap() {
                TurnProgress::ApprovalNeeded(ask) => host.agent().decide(ask.approve()).await.unwrap(),
                TurnProgress::Final(outcome) => text = outcome.text,
                _ => {}
            }
        }
        assert_eq!((text.as_str(), paid.all().len()), ("paid", 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_approval_request_expires() {
    let clock = ManualClock::default();
    let model = paying().says("nobody answered");
    let (host, paid) = paying_host(&model);
    let host = host
        .clock(clock.clone())
        .policies(TurnPolicies::new().with_approval_expiry(DAY))
        .build()
        .unwrap();
    let (parked, _) = park(host.agent()).await;
    clock.advance(DAY - Duration::from_secs(1));
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(host.agent().approvals().len(), 1, "a day is not over yet");
    clock.advance(Duration::from_secs(1));
    let outcome = host.agent().outcome(&parked.turn).await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "nobody answered"));
    assert!(paid.all().is_empty());
    let told = &results(&model.requests()[1])[0];
    assert!(told.contains("no user approved this call in time"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_person_costs_no_time_of_the_turn() {
    let clock = ManualClock::default();
    let model = paying().says("paid");
    let (host, _) = paying_host(&model);
    let budget = Budget::default().with_max_wall_clock(Duration::from_secs(60));
    let host = host.clock(clock.clone()).budget(budget).build().unwrap();
    let (parked, asks) = park(host.agent()).await;
    clock.advance(DAY);
    tokio::time::sleep(Duration::from_secs(600)).await;
    host.agent().decide(asks[0].approve()).await.unwrap();
    assert_eq!(
        host.agent().outcome(&parked.turn).await.unwrap().status,
        TurnStatus::Answered
    );
}

#[tokio::test]
async fn a_parked_turn_can_be_cancelled() {
    let model = paying();
    let (host, paid) = paying_host(&model);
    let host = host.build().unwrap();
    let (parked, asks) = park(host.agent()).await;
    host.agent().cancel(&parked.turn).await.unwrap();
    let outcome = host.agent().outcome(&parked.turn).await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    assert!(host.agent().decide(asks[0].approve()).await.is_err());
    assert!(paid.all().is_empty());
}

#[tokio::test]
async fn a_session_is_free_while_a_turn_of_it_is_parked() {
    let model = paying().says("meanwhile").says("paid");
    let (host, _) = paying_host(&model);
    let host = host.build().unwrap();
    let (parked, asks) = park(host.agent()).await;
    assert_eq!(host.agent().ask("s", "hi").await.unwrap().text, "meanwhile");
    host.agent().decide(asks[0].approve()).await.unwrap();
    assert_eq!(host.agent().outcome(&parked.turn).await.unwrap().text, "paid");
}

#[tokio::test]
async fn ask_says_how_to_approve_and_a_stream_waits_for_it() {
    let model = paying().calls("pay", json!({"n": 8})).says("paid");
    let (host, _) = paying_host(&model);
    let host = host.build().unwrap();
    let refused = host.agent().ask("other", "pay").await;
    assert!(matches!(refused, Err(TurnError::NeedsApproval(_))), "got {refused:?}");

    let agent = host.agent().clone();
    let reports = tokio::spawn(collect(agent.stream("s", "pay")));
    settle().await;
    let ask = agent
        .approvals()
        .into_iter()
        .find(|ask| ask.arguments.contains('8'))
        .unwrap();
    agent.decide(ask.approve()).await.unwrap();
    let reports = reports.await.unwrap();
    assert_eq!(reports[0], TurnProgress::ApprovalNeeded(ask));
    assert!(matches!(reports.last(), Some(TurnProgress::Final(outcome)) if outcome.text == "paid"));
}

/// A journal that takes its time to release a claim: others run meanwhile.
#[derive(Debug)]
struct SlowRelease;

#[async_trait::async_trait]
impl Around for SlowRelease {
    async fn before_release(&self) {
        settle().await;
    }
}

/// The caller's wait for the parked turn ends before the turn's claim is released.
#[tokio::test]
async fn an_approval_that_a_stream_asks_for_is_not_announced_as_well() {
    let model = paying().says("paid");
    let (host, _) = paying_host(&model);
    let journal = Counting::new(InMemoryTurnJournal::default(), SlowRelease);
    let host = host.stores(Stores::new().with_journal(journal)).build().unwrap();
    let agent = host.agent().clone();
    let mut announced = agent.announcements();
    assert!(announced.next().now_or_never().is_none(), "nothing is said yet");
    let mut stream = agent.stream("s", "pay");
    let ask = loop {
        if let TurnProgress::ApprovalNeeded(ask) = stream.next().await.unwrap().unwrap() {
            break ask;
        }
    };
    agent.decide(ask.approve()).await.unwrap();
    while !matches!(stream.next().await, Some(Ok(TurnProgress::Final(_)))) {}
    agent.announce("s", "The last word.").await.unwrap();
    let said = announced.next().await.unwrap();
    assert_eq!(said.content.words(), "The last word.");
}

#[tokio::test]
async fn the_same_message_while_its_turn_is_parked_says_so_again() {
    let model = paying().says("paid");
    let (host, paid) = paying_host(&model);
    let host = host.build().unwrap();
    let (parked, asks) = park(host.agent()).await;
    assert_eq!(
        host.agent().run(TurnRequest::new("s", "m1", "pay")).await.unwrap(),
        parked
    );
    host.agent().decide(asks[0].approve()).await.unwrap();
    host.agent().outcome(&parked.turn).await.unwrap();
    assert_eq!(paid.all().len(), 1);
}

/// A host that keeps its turns in `folder`.
fn kept_host(folder: &Path, clock: &ManualClock, model: &ScriptedModel) -> (AgentHost, Notes) {
    let (host, paid) = paying_host(model);
    let host = host
        .data_dir(folder)
        .clock(clock.clone())
        .policies(TurnPolicies::new().with_approval_expiry(DAY));
    (host.build().unwrap(), paid)
}

/// Parks a turn and ends its process.
async fn park_and_stop(folder: &Path, clock: &ManualClock) -> (TurnOutcome, ApprovalRequest) {
    let (host, _) = kept_host(folder, clock, &paying());
    let (parked, asks) = park(host.agent()).await;
    host.shutdown(Duration::from_secs(5)).await;
    (parked, asks[0].clone())
}

#[tokio::test]
async fn a_parked_turn_waits_over_restarts_and_goes_on_when_decided() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let (parked, ask) = park_and_stop(folder.path(), &clock).await;
    for _ in 0..5 {
        // However often the host starts: waiting is no interruption.
        let (host, _) = kept_host(folder.path(), &clock, &ScriptedModel::new());
        host.resume().await.unwrap();
        assert_eq!(host.agent().approvals(), std::slice::from_ref(&ask));
        host.shutdown(Duration::from_secs(5)).await;
    }
    let model = ScriptedModel::new().answers_with(|request| ChatResponse::text(results(request).join(" ")));
    let (host, paid) = kept_host(folder.path(), &clock, &model);
    host.resume().await.unwrap();
    host.agent().decide(ask.approve()).await.unwrap();
    let outcome = host.agent().outcome(&parked.turn).await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "call_1: pay is done"));
    assert_eq!(paid.all(), ["pay 7"]);
}

#[tokio::test]
async fn a_decision_reaches_a_parked_turn_before_anything_was_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let (parked, ask) = park_and_stop(folder.path(), &clock).await;
    let (host, paid) = kept_host(folder.path(), &clock, &ScriptedModel::new().says("paid"));
    host.agent().decide(ask.approve()).await.unwrap();
    assert_eq!(host.agent().outcome(&parked.turn).await.unwrap().text, "paid");
    assert_eq!(paid.all(), ["pay 7"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_expires_over_a_restart_too() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let (parked, _) = park_and_stop(folder.path(), &clock).await;
    clock.advance(2 * DAY);
    let (host, paid) = kept_host(folder.path(), &clock, &ScriptedModel::new().says("too late"));
    host.resume().await.unwrap();
    assert_eq!(host.agent().outcome(&parked.turn).await.unwrap().text, "too late");
    assert!(paid.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn neither_a_jump_of_the_clock_nor_a_queue_uses_up_the_time_of_an_approved_call() {
    let model = paying().calls("look", json!({})).says("Looked.").says("paid");
    let clock = ManualClock::default();
    let (look, mut handle) = mock_tool("look");
    let (host, paid) = paying_host(&model);
    let budget = Budget::default().with_max_wall_clock(Duration::from_secs(60));
    let host = host.tool(look).budget(budget).clock(clock.clone()).build().unwrap();
    let (parked, asks) = park(host.agent()).await;
    let other = host.agent().clone();
    let asking = tokio::spawn(async move { other.ask("s", "Look!").await });
    let call = handle.next_call().await;
    host.agent().decide(asks[0].approve()).await.unwrap();
    settle().await;
    clock.advance(DAY);
    call.respond("seen");
    let looked = asking.await.unwrap().unwrap();
    assert_eq!(ending(&looked), (&TurnStatus::Answered, "Looked."));
    let outcome = host.agent().outcome(&parked.turn).await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "paid"));
    assert_eq!(paid.all(), ["pay 7"]);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Payment {
    #[allow(dead_code, reason = "its type is what is tested")]
    amount: u32,
}

#[tokio::test]
async fn a_call_whose_arguments_do_not_fit_is_an_error_and_no_question() {
    let (mut untyped, _) = mock_tool("pay");
    untyped.registration.parameters_schema =
        json!({"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]});
    let typed = tool("pay", |_: Payment| async { "paid" }).description("Pays.");
    for (kind, pay) in [("untyped", untyped), ("typed", typed)] {
        let model = ScriptedModel::new().calls("pay", json!({"sum": 3})).says("I cannot.");
        let host = host_of(&model).tool(pay.needs_approval()).build().unwrap();
        let outcome = host.agent().ask("s", "Pay 3.").await.unwrap();
        assert_eq!(outcome.text, "I cannot.", "{kind}");
        let told = results(&model.requests()[1]);
        assert!(
            told[0].contains("amount") && !told[0].contains("approval"),
            "{kind}: {told:?}"
        );
    }
}
