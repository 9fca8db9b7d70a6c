//! Models that go in circles: the same calls again and again, and empty answers.

use rockbot::testing::ScriptedModel;
use rockbot_core::tool::{Tool, ToolError, tool};
use rockbot_core::turn::{BudgetLimit, TurnFailure, TurnOutcome, TurnStatus};
use rockbot_host::answer::SafeLinks;
use rockbot_host::turn::Nudges;
use rockbot_host::{AgentHost, TurnPolicies};
use serde_json::{Value, json};

use crate::support::{Notes, results};

/// Opens a file.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Open {
    path: String,
}

/// Returns a tool that never finds its file, and the paths that it was called with.
fn open() -> (Tool, Notes) {
    let paths = Notes::default();
    let opened = paths.clone();
    let open = tool("open", move |Open { path }: Open| {
        opened.add(path);
        async { Err::<String, _>("no such file") }
    });
    (open.pure(), paths)
}

async fn run(model: &ScriptedModel, nudges: Nudges) -> (TurnOutcome, usize) {
    let (tool, opened) = open();
    let policies = TurnPolicies::new().with_nudges(nudges);
    let host = AgentHost::in_memory().chat(model.clone()).tool(tool).policies(policies);
    let host = host.build().unwrap();
    let outcome = host.agent().run(host.agent().request("s", "Open it.")).await.unwrap();
    (outcome, opened.all().len())
}

fn calling(arguments: impl IntoIterator<Item = Value>) -> ScriptedModel {
    let calls = arguments.into_iter();
    calls.fold(ScriptedModel::new(), |model, arguments| model.calls("open", arguments))
}

#[tokio::test]
async fn a_call_that_keeps_failing_is_refused_and_then_ends_the_turn() {
    let model = calling((0..5).map(|_| json!({"path": "a"}))).says("I tried to open a, without success.");
    let (outcome, opened) = run(&model, Nudges::default()).await;
    assert_eq!(opened, 3);
    assert_eq!(outcome.status, TurnStatus::Partial(BudgetLimit::Repetition));
    assert_eq!(outcome.text, "I tried to open a, without success.");
    let requests = model.requests();
    let told = results(&requests[4]);
    assert!(told[2].contains("you have made this call several times"), "{told:?}");
    assert!(
        told[3].contains("no such file") && told[3].contains("not made again"),
        "{told:?}"
    );
    let last = requests.last().unwrap();
    assert!(last.tools.is_empty());
    assert!(last.messages.last().unwrap().text().contains("say what you tried"));
}

#[tokio::test]
async fn nearly_equal_arguments_and_alternating_calls_are_a_circle() {
    let same = [
        json!({"path": "a"}),
        json!({"path": " a "}),
        json!({"path": "a."}),
        json!({"path": "a"}),
        json!({"path": "a!"}),
    ];
    let (outcome, opened) = run(&calling(same).says("No."), Nudges::default()).await;
    assert_eq!(
        (outcome.status, opened),
        (TurnStatus::Partial(BudgetLimit::Repetition), 3)
    );

    let paths = ["a", "b"].iter().cycle().take(9);
    let model = calling(paths.map(|path| json!({"path": path}))).says("No.");
    let (outcome, opened) = run(&model, Nudges::default()).await;
    assert_eq!(
        (outcome.status, opened),
        (TurnStatus::Partial(BudgetLimit::Repetition), 6)
    );
}

#[tokio::test]
async fn different_calls_and_a_host_that_allows_it_go_on() {
    let model = calling((0..8).map(|n| json!({"path": format!("file {n}")}))).says("None of them.");
    let (outcome, opened) = run(&model, Nudges::default()).await;
    assert_eq!((outcome.status, opened), (TurnStatus::Answered, 8));

    let model = calling((0..8).map(|_| json!({"path": "a"}))).says("No.");
    let (outcome, opened) = run(&model, Nudges::default().with_on_repeated_calls(false)).await;
    assert_eq!((outcome.status, opened), (TurnStatus::Answered, 8));
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more() {
    let model = ScriptedModel::new().says(" ").says("Here it is.");
    let (outcome, _) = run(&model, Nudges::default()).await;
    assert_eq!((outcome.text.as_str(), outcome.model_calls), ("Here it is.", 2));
    let requests = model.requests();
    let asked = requests[1].messages.last().unwrap().text().into_owned();
    assert!(asked.contains("Your last answer was empty."), "{asked}");

    let (outcome, _) = run(&ScriptedModel::new().says("").says(""), Nudges::default()).await;
    assert_eq!(outcome.status, TurnStatus::Failed(TurnFailure::NoAnswer));
}

#[tokio::test]
async fn an_answer_that_repeats_the_question_is_none() {
    let model = ScriptedModel::new().calls("open", json!({"path": "a"}));
    let host = AgentHost::in_memory()
        .chat(model.says("What is in a?").says("What is in a?"))
        .tool(tool("open", async |_: Open| "A cat.").pure());
    let agent = host.build().unwrap();
    let agent = agent.agent();
    let outcome = agent.run(agent.request("s", "What is in a?")).await.unwrap();
    let expected = "The model gave no answer: it repeated the question. Its last calls returned:\n- open: A cat.";
    assert_eq!(outcome.text, expected);
}

/// The results of a turn without words reach its user, through the filter of answers: others
/// wrote them.
#[tokio::test]
async fn a_turn_without_words_says_what_its_calls_returned() {
    let page = || async { Ok::<_, ToolError>("It is noon, see [more](https://evil.example/x).") };
    let host = AgentHost::in_memory()
        .chat(
            ScriptedModel::new()
                .calls("open", json!({"path": "a"}))
                .says("")
                .says(""),
        )
        .tool(tool("open", move |_: Open| page()).pure())
        .answer_filter(SafeLinks::new());
    let agent = host.build().unwrap();
    let agent = agent.agent();
    let outcome = agent.run(agent.request("s", "What time is it?")).await.unwrap();
    let expected = "The model gave no answer: it returned an empty answer. Its last calls returned:\n\
                    - open: It is noon, see more (evil.example).";
    assert_eq!(
        (outcome.text.as_str(), outcome.status),
        (expected, TurnStatus::Failed(TurnFailure::NoAnswer))
    );
}
