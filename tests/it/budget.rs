//! A spent budget ends a turn gracefully.

use std::time::Duration;

use rockbot_core::chat::{ChatErrorKind, MicroUsd, Usage};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::turn::{Budget, BudgetLimit, TurnOutcome, TurnStatus};
use serde_json::json;

use crate::support::{ending, host_of, noting_tool, results, settle, transcript};

const MINUTE: Duration = Duration::from_secs(60);

fn budget() -> Budget {
    Budget::default()
        .with_max_model_calls(2)
        .with_max_tool_calls(2)
        .with_max_wall_clock(MINUTE)
        .with_max_tokens(100)
}

/// Asks a model that always wants to call `look` before it runs into `limit`, and then plays the
/// rest of its script.
async fn run(budget: Budget, model: &ScriptedModel) -> TurnOutcome {
    let (look, _) = noting_tool("look");
    let host = host_of(model).budget(budget).tool(look).build().unwrap();
    host.agent().ask("s", "go").await.unwrap()
}

/// A limit, the budget that sets it, a script that runs into it, and how many calls are done by
/// then.
type Limited = (BudgetLimit, Budget, fn() -> ScriptedModel, usize);

/// Scripts that run into the limits that are counted.
fn limits() -> [Limited; 4] {
    let look = || ScriptedModel::new().calls("look", json!({})).calls("look", json!({}));
    let many = || {
        ScriptedModel::new()
            .calls("look", json!({}))
            .calls_all([("look", json!({})), ("look", json!({}))])
    };
    let dear = || {
        let usage = Usage::new(90, 10);
        ScriptedModel::new().calls("look", json!({})).with_usage(usage)
    };
    let costly = || {
        let model = ScriptedModel::new().calls("look", json!({})).with_cost(MicroUsd(900));
        model.calls("look", json!({})).with_cost(MicroUsd(100))
    };
    let free = Budget::default();
    [
        (BudgetLimit::ModelCalls, free.with_max_model_calls(2), look, 2),
        (BudgetLimit::ToolCalls, free.with_max_tool_calls(2), many, 1),
        (BudgetLimit::Tokens, free.with_max_tokens(100), dear, 1),
        (BudgetLimit::Cost, free.with_max_cost(MicroUsd(1_000)), costly, 2),
    ]
}

#[tokio::test]
async fn each_limit_that_is_counted_ends_with_a_last_answer_without_tools() {
    for (limit, budget, script, done) in limits() {
        let model = script().says("this far");
        let outcome = run(budget, &model).await;
        assert_eq!(ending(&outcome), (&TurnStatus::Partial(limit), "this far"));
        assert_eq!(outcome.calls.len(), done, "{limit}");
        let requests = model.requests();
        let last = requests.last().unwrap();
        assert!(last.tools.is_empty());
        let told = transcript(last).pop().unwrap();
        assert!(
            told.starts_with(&format!("user: The {limit} for this request is used up.")),
            "{told}"
        );
        model.assert_complete();
    }
}

#[tokio::test]
async fn a_last_answer_that_fails_is_replaced_by_the_list_of_what_was_done() {
    for (limit, budget, script, done) in limits() {
        let done = vec!["look"; done].join(", ");
        let expected =
            format!("I had to stop because the {limit} for this request was used up. Done before that: {done}.");
        let last_answers = [
            script().fails(ChatErrorKind::Overloaded),
            script().says(""),
            script().calls("look", json!({})),
        ];
        for model in last_answers {
            let outcome = run(budget, &model).await;
            assert_eq!(ending(&outcome), (&TurnStatus::Partial(limit), expected.as_str()));
            model.assert_complete();
        }
    }
}

#[tokio::test]
async fn calls_beyond_the_limit_are_told_to_the_model_as_not_run() {
    let (limit, budget, script, _) = limits()[1];
    assert_eq!(limit, BudgetLimit::ToolCalls);
    let model = script().says("this far");
    run(budget, &model).await;
    assert_eq!(
        results(&model.requests()[2]),
        [
            "call_1: look is done",
            "call_2: not run: the turn ended first.",
            "call_3: not run: the turn ended first."
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn time_used_up_while_the_model_is_asked_leaves_a_reserve_for_the_last_answer() {
    let model = ScriptedModel::new().hangs().says("in short");
    let outcome = run(budget(), &model).await;
    assert_eq!(
        ending(&outcome),
        (&TurnStatus::Partial(BudgetLimit::WallClock), "in short")
    );
    assert_eq!(outcome.model_calls, 2);
}

#[tokio::test(start_paused = true)]
async fn the_reserve_ends_too() {
    let model = ScriptedModel::new().calls("look", json!({})).hangs().hangs();
    let before = tokio::time::Instant::now();
    let outcome = run(budget(), &model).await;
    let expected = "I had to stop because the time for this request was used up. Done before that: look.";
    assert_eq!(
        ending(&outcome),
        (&TurnStatus::Partial(BudgetLimit::WallClock), expected)
    );
    assert_eq!(before.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn time_used_up_while_pure_calls_run_gives_them_up() {
    let model = ScriptedModel::new()
        .calls_all([("look", json!({})), ("look", json!({}))])
        .says("in short");
    let (look, mut handle) = mock_tool("look");
    let look = look.pure().time_limit(2 * MINUTE);
    let host = host_of(&model).budget(budget()).tool(look).build().unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("s", "go").await });
    handle.next_call().await.respond("seen");
    let mut hanging = handle.next_call().await;
    hanging.dropped().await;
    let outcome = asking.await.unwrap().unwrap();
    assert_eq!(
        ending(&outcome),
        (&TurnStatus::Partial(BudgetLimit::WallClock), "in short")
    );
    let requests = model.requests();
    assert_eq!(
        requests.len(),
        2,
        "with no time left, the model is asked for the last answer only"
    );
    let told = results(&requests[1]);
    assert!(told[0] == "call_1: seen" && told[1].starts_with("call_2: "), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn time_used_up_while_a_mutating_call_runs_waits_for_the_call() {
    let model = ScriptedModel::new()
        .calls_all([("send", json!({})), ("send", json!({}))])
        .says("in short");
    let (send, mut handle) = mock_tool("send");
    let send = send.time_limit(3 * MINUTE);
    let host = host_of(&model).budget(budget()).tool(send).build().unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("s", "go").await });
    let call = handle.next_call().await;
    tokio::time::sleep(2 * MINUTE).await;
    call.respond("sent");
    let outcome = asking.await.unwrap().unwrap();
    assert_eq!(
        ending(&outcome),
        (&TurnStatus::Partial(BudgetLimit::WallClock), "in short")
    );
    assert_eq!(handle.started(), 1, "the second call never ran");
    assert_eq!(
        results(&model.requests()[1]),
        ["call_1: sent", "call_2: not run: the turn ended first."]
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_session_costs_no_time_of_the_turn() {
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .says("first")
        .says("second");
    let (look, mut handle) = mock_tool("look");
    let host = host_of(&model)
        .budget(Budget::default().with_max_wall_clock(MINUTE))
        .tool(look.pure())
        .build()
        .unwrap();
    let agent = host.agent().clone();
    let first = tokio::spawn({
        let agent = agent.clone();
        async move { agent.ask("s", "one").await }
    });
    let call = handle.next_call().await;
    let second = tokio::spawn(async move { agent.ask("s", "two").await });
    settle().await;
    tokio::time::sleep(MINUTE - Duration::from_secs(1)).await;
    call.respond("seen");
    assert_eq!(first.await.unwrap().unwrap().status, TurnStatus::Answered);
    assert_eq!(second.await.unwrap().unwrap().status, TurnStatus::Answered);
}

#[tokio::test]
async fn a_model_that_calls_forever_is_stopped() {
    for tools in [["missing", "missing"], ["look", "missing"]] {
        let calls = (0..7).map(|round| (tools[round % 2], json!({"n": round})));
        let model = calls.fold(ScriptedModel::new(), |model, (tool, n)| model.calls(tool, n));
        let model = model.says("I give up");
        let budget = Budget::default().with_max_model_calls(7);
        let outcome = run(budget, &model).await;
        assert_eq!(
            ending(&outcome),
            (&TurnStatus::Partial(BudgetLimit::ModelCalls), "I give up")
        );
        assert_eq!((outcome.model_calls, outcome.calls.len()), (8, 7));
        model.assert_complete();
    }
}
