//! Pipelines: procedures of a program whose steps are journalled: a step that has ended never
//! runs again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{join, try_join_all};
use rockbot::tools::pipelines::{Pipeline, StepError, Steps};
use rockbot_core::BoxError;
use rockbot_core::chat::MicroUsd;
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{Tool, ToolError, tool};
use rockbot_core::turn::{Budget, BudgetLimit, TurnOutcome, TurnProgress, TurnRequest, TurnStatus};
use rockbot_host::{AgentHost, AgentHostBuilder, TurnError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Anything, Notes, host_of, noting_tool, results, settle};

/// A host with pipelines, which has started.
async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

async fn run(host: &AgentHost, message: &str) -> Result<TurnOutcome, TurnError> {
    host.agent_called("steps").unwrap().ask("main", message).await
}

/// A mutating tool that notes its calls and returns its argument doubled.
fn doubling(notes: &Notes) -> Tool {
    let notes = notes.clone();
    tool("double", move |Anything { n }: Anything| {
        notes.add(format!("double {n}"));
        async move { 2 * n }
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Choice {
    amount: i64,
}

#[tokio::test(start_paused = true)]
async fn steps_call_tools_and_ask_for_typed_answers() {
    let model = ScriptedModel::new()
        .says(r#"{"amount": 21}"#)
        .with_cost(MicroUsd(5))
        .says("Fine.");
    let steps = Pipeline::new("steps", |steps: Steps, n: i64| async move {
        let doubled: i64 = steps.call("double", json!({ "n": n })).await?;
        if doubled < 10 {
            return Ok(json!({ "small": doubled }));
        }
        let choice: Choice = steps.ask(format!("How much of {doubled}?")).await?;
        let ordered: i64 = steps.call("double", json!({"n": choice.amount})).await?;
        let remark: String = steps.ask("Is it fine?").await?;
        Ok(json!({ "ordered": ordered, "remark": remark }))
    });
    let done = Notes::default();
    let host = started(host_of(&model).tool(doubling(&done)).add(steps)).await;
    assert_eq!(run(&host, "2").await.unwrap().text, r#"{"small":4}"#);
    let outcome = run(&host, "8").await.unwrap();
    assert_eq!(outcome.text, r#"{"ordered":42,"remark":"Fine."}"#);
    assert_eq!(done.all(), ["double 2", "double 8", "double 21"]);
    assert_eq!((outcome.model_calls, outcome.spent().cost), (2, MicroUsd(5)));
    let asked = &model.requests()[0];
    assert_eq!(asked.output.as_ref().unwrap().name, "Choice");
    assert!(asked.tools.is_empty());
    model.assert_complete();

    let refused = run(&host, "many").await.unwrap_err().to_string();
    assert!(
        refused.starts_with("The program failed: the message does not fit: "),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn steps_that_are_awaited_together_run_side_by_side() {
    let steps = Pipeline::new("steps", |steps: Steps, _: String| async move {
        let look = |n: usize| steps.call::<String>("look", json!({ "n": n }));
        // More than `join_all` polls by itself.
        let many = try_join_all((0..50).map(look)).await?;
        // Two chains: the second step of each begins when both first ones have ended.
        let chain = async |n: i64| {
            let once: i64 = steps.call("double", json!({ "n": n })).await?;
            steps.call::<i64>("double", json!({ "n": once })).await
        };
        let (a, b) = join(chain(1), chain(10)).await;
        Ok((many.len(), a?, b?))
    });
    let done = Notes::default();
    let host = host_of(&ScriptedModel::new()).tool(noting_tool("look").0);
    let host = started(host.tool(doubling(&done)).add(steps)).await;
    let mut turn = host.agent_called("steps").unwrap().stream("main", "Begin.");
    let mut running = 0_u32;
    let mut most = 0;
    while let Some(progress) = turn.next().await {
        match progress.unwrap() {
            TurnProgress::ToolStarted { .. } => {
                running += 1;
                most = most.max(running);
            }
            TurnProgress::ToolFinished { .. } => running -= 1,
            TurnProgress::Final(outcome) => assert_eq!(outcome.text, "[50,4,40]"),
            _ => {}
        }
    }
    assert!(most > 1, "{most} at once");
    assert_eq!(done.all(), ["double 1", "double 10", "double 2", "double 20"]);
}

/// A tool that fails.
fn failing() -> Tool {
    tool("fail", |_: Anything| async {
        Err::<String, _>(ToolError::execution_failed("no more paper"))
    })
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_is_handled_or_ends_the_run() {
    let steps = Pipeline::new("steps", |steps: Steps, handled: bool| async move {
        let failed: Result<String, StepError> = steps.call("fail", json!({})).await;
        match failed {
            Err(StepError::Failed { tool, text }) if handled => Ok(format!("{tool}: {text}")),
            failed => Ok(failed?),
        }
    });
    let host = started(host_of(&ScriptedModel::new()).tool(failing()).add(steps)).await;
    assert_eq!(run(&host, "true").await.unwrap().text, "fail: no more paper");
    let TurnError::Unanswered(ended) = run(&host, "false").await.unwrap_err() else {
        panic!("it is a failed turn")
    };
    assert!(matches!(ended.status, TurnStatus::Failed(_)), "{:?}", ended.status);
    let words = "The program failed: `fail` failed: no more paper";
    assert!(ended.text.starts_with(words), "{}", ended.text);
}

#[tokio::test(start_paused = true)]
async fn another_agent_does_a_step_with_its_own_tools() {
    let reviewer = ScriptedModel::new().calls("grade", json!({"n": 1})).says("true");
    let steps = Pipeline::new("steps", |steps: Steps, text: String| async move {
        let task = format!("Is `{text}` good?");
        let is_good: Result<bool, StepError> = steps.ask_agent("reviewer", task).await;
        let unknown: Result<String, StepError> = steps.ask_agent("editor", "Well?").await;
        Ok(format!("{is_good:?} {}", unknown.unwrap_err()))
    });
    let lead = ScriptedModel::new()
        .calls("review", json!({"task": "a text"}))
        .says("done");
    let host = host_of(&lead).add(steps).agent("reviewer", |agent| {
        let answers = reviewer.clone().says(r#"{"value": true}"#);
        agent.chat(answers).tool(noting_tool("grade").0)
    });
    let host = started(host).await;
    let review = host.agent_called("steps").unwrap().as_tool("review", "Reviews a text.");
    host.add_tool(review).unwrap();
    assert_eq!(host.agent().ask("main", "Begin.").await.unwrap().text, "done");
    assert_eq!(
        results(&lead.requests()[1]),
        [
            "call_1: Ok(true) `editor` failed: the host has no agent `editor`: add it with `.agent(\"editor\", …)` on its builder"
        ]
    );
    assert!(
        lead.requests()[0]
            .tools
            .names()
            .all(|name| !name.as_str().starts_with("question_of"))
    );
}

#[tokio::test]
async fn a_run_goes_on_after_a_restart_and_no_step_that_ended_runs_again() {
    let folder = tempfile::tempdir().unwrap();
    let done = Notes::default();
    let open = async |model: &ScriptedModel| {
        let steps = Pipeline::new("steps", |steps: Steps, n: i64| async move {
            let first: i64 = steps.call("double", json!({ "n": n })).await?;
            let amount: i64 = steps.ask(format!("How much of {first}?")).await?;
            Ok(steps.call::<i64>("double", json!({ "n": amount })).await?)
        });
        started(host_of(model).tool(doubling(&done)).add(steps).data_dir(folder.path())).await
    };
    let hanging = ScriptedModel::new().hangs();
    let host = open(&hanging).await;
    let agent = host.agent_called("steps").unwrap();
    let request = TurnRequest::new("main", "run-1", "3");
    let turn = agent.spawn(request.clone()).await.unwrap().id().clone();
    while hanging.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.shutdown(Duration::from_secs(5)).await;
    drop((host, agent));
    assert_eq!(done.all(), ["double 3"]);

    let model = ScriptedModel::new().says(r#"{"value": 50}"#);
    let host = open(&model).await;
    let agent = host.agent_called("steps").unwrap();
    assert_eq!(agent.outcome(&turn).await.unwrap().text, "100");
    assert_eq!(done.all(), ["double 3", "double 50"]);
    assert_eq!(
        agent.run(request).await.unwrap().text,
        "100",
        "the same message is the same run"
    );
    assert_eq!(done.all(), ["double 3", "double 50"]);
    model.assert_complete();
}

/// The words of a run that fails, and the steps that were made.
async fn failure<F>(run_of: impl Fn(Steps, String) -> F + Send + Sync + 'static) -> (String, Vec<String>)
where
    F: Future<Output = Result<String, BoxError>> + Send + 'static,
{
    let done = Notes::default();
    let steps = Pipeline::new("steps", run_of);
    let host = started(host_of(&ScriptedModel::new()).tool(doubling(&done)).add(steps)).await;
    (run(&host, "go").await.unwrap_err().to_string(), done.all())
}

#[tokio::test(start_paused = true)]
async fn a_function_that_is_no_pipeline_fails_in_words() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);

    let (text, done) = failure(|steps, _| async move {
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        let _: i64 = steps.call("double", json!({ "n": number })).await?;
        Ok("never".to_owned())
    })
    .await;
    let begin =
        "The program failed: it has made other steps before: `double` where it now makes `double`, or with other";
    assert!(text.starts_with(begin), "{text}");
    assert_eq!(done, ["double 0"]);

    let (text, done) = failure(|_, _| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(String::new())
    })
    .await;
    assert!(text.contains("it waits for something that is no step"), "{text}");
    assert_eq!(done, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_budget_is_used_up_is_a_partial_one() {
    let done = Notes::default();
    let steps = Pipeline::new("steps", |steps: Steps, mut n: i64| async move {
        while n < 1_000 {
            n = steps.call("double", json!({ "n": n })).await?;
        }
        Ok(n)
    });
    let steps = steps.with_budget(Budget::default().with_max_tool_calls(3));
    let host = started(host_of(&ScriptedModel::new()).tool(doubling(&done)).add(steps)).await;
    let outcome = run(&host, "1").await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Partial(BudgetLimit::ToolCalls));
    assert_eq!(done.all(), ["double 1", "double 2", "double 4"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_ends_its_question() {
    let steps = Pipeline::new("steps", |steps: Steps, _: String| async move {
        Ok(steps.ask::<String>("Well?").await?)
    });
    let model = ScriptedModel::new().hangs();
    let host = started(host_of(&model).add(steps)).await;
    let turn = host
        .agent_called("steps")
        .unwrap()
        .ask("main", "go")
        .start()
        .await
        .unwrap();
    settle().await;
    turn.cancel().await.unwrap();
    assert_eq!(turn.outcome().await.unwrap().status, TurnStatus::Cancelled);
    settle().await;
    assert!(host.agent().is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_step_that_needs_a_person_waits_for_the_decision() {
    let steps = Pipeline::new("steps", |steps: Steps, _: String| async move {
        Ok(steps.call::<String>("pay", json!({})).await?)
    });
    let (pay, mut paying) = mock_tool("pay");
    let host = started(host_of(&ScriptedModel::new()).tool(pay.needs_approval()).add(steps)).await;
    let agent = host.agent_called("steps").unwrap();
    let turn = agent.ask("main", "go").start().await.unwrap();
    settle().await;
    let asked = host.agent().approvals().remove(0);
    agent.decide(asked.approve()).await.unwrap();
    paying.next_call().await.respond("paid");
    assert_eq!(turn.outcome().await.unwrap().text, "paid");
}

#[test]
fn a_name_that_no_tool_can_have_is_refused() {
    for name in ["", "a b", "a/b", &"x".repeat(41)] {
        let steps = Pipeline::new(name, |_: Steps, _: Value| async { Ok("") });
        let error = host_of(&ScriptedModel::new())
            .add(steps)
            .build()
            .unwrap_err()
            .to_string();
        assert!(error.contains("the name of a pipeline has 1 to 40 letters"), "{error}");
    }
}
