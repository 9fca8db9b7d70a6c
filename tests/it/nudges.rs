//! Messages of the host to the model: the briefing at the start of a turn, and the nudges after
//! weak answers.

use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use rockbot::testing::{ManualClock, ScriptedModel};
use rockbot_core::Timestamp;
use rockbot_core::chat::Role;
use rockbot_core::tool::{Tool, ToolError, tool};
use rockbot_core::turn::{TurnFailure, TurnOutcome, TurnStatus};
use rockbot_host::turn::Nudges;
use rockbot_host::{AgentHost, Briefing, TurnPolicies};
use serde_json::json;

use crate::support::unguarded;

/// Looks around.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {}

fn look(takes: Duration) -> Tool {
    let look = move |_: Look| async move {
        tokio::time::sleep(takes).await;
        "nothing new"
    };
    tool("look", look).pure()
}

/// Returns the last message before the model's last answer, and the end of the turn.
async fn told(model: &ScriptedModel) -> (String, TurnOutcome) {
    let tool = look(Duration::ZERO);
    let nudges = Nudges::default().with_on_unfinished_set_up(true);
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tool(tool)
        .policies(TurnPolicies::new().with_nudges(nudges))
        .build()
        .unwrap();
    let outcome = host.agent().run(host.agent().request("s", "hi")).await.unwrap();
    let requests = model.requests();
    let last = requests.last().unwrap().messages.last().unwrap().clone();
    assert!(matches!(last.role, Role::User | Role::Tool));
    (last.text().into_owned(), outcome)
}

#[tokio::test]
async fn a_step_that_is_only_announced_is_asked_for_once() {
    let model = ScriptedModel::new().says("Let me look:").says("Still looking:");
    let (told, outcome) = told(&model).await;
    assert!(
        told.starts_with(
            "[Internal check, not from the user. Do not mention it.] You announced a step and did not take it."
        ),
        "{told}"
    );
    assert_eq!((outcome.text.as_str(), outcome.model_calls), ("Still looking:", 2));
}

#[tokio::test]
async fn no_announced_step_is_asked_for_by_default() {
    let model = ScriptedModel::new().says("Let me look:");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tool(look(Duration::ZERO))
        .build()
        .unwrap();
    assert_eq!(host.agent().ask("s", "hi").await.unwrap().text, "Let me look:");
    model.assert_complete();
}

#[tokio::test]
async fn a_nudged_model_may_call_tools() {
    let model = ScriptedModel::new()
        .says("Let me look:")
        .calls("look", json!({}))
        .says("Found it.");
    let (_, outcome) = told(&model).await;
    assert_eq!((outcome.text.as_str(), outcome.calls.len()), ("Found it.", 1));
}

/// Returns the outcome of a request that needs a call, for a model that is told of hollow claims.
async fn claimed(model: &ScriptedModel) -> TurnOutcome {
    let nudges = Nudges::default().with_on_hallucinated_calls(true);
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tool(look(Duration::ZERO))
        .policies(TurnPolicies::new().with_nudges(nudges));
    let host = host.build().unwrap();
    let request = host.agent().request("s", "Note that the milk is sour.");
    host.agent().run(request).await.unwrap()
}

#[tokio::test]
async fn a_claim_of_a_call_is_sent_back_and_then_put_right() {
    let mended = ScriptedModel::new()
        .says("Noted!")
        .calls("look", json!({}))
        .says("Noted.");
    let outcome = claimed(&mended).await;
    assert_eq!((outcome.text.as_str(), outcome.model_calls), ("Noted.", 3));
    let asked = mended.requests()[1].messages.last().unwrap().text().into_owned();
    let expected = "Answer with a call of a tool: without a call, nothing is saved or done.";
    assert_eq!(asked, expected);
    let claim = |message: &std::sync::Arc<rockbot_core::chat::ChatMessage>| message.text() == "Noted!";
    assert!(
        !mended.requests()[1].messages.iter().any(claim),
        "the claim is forgotten"
    );

    let outcome = claimed(&ScriptedModel::new().says("Noted!").says("I have noted it.")).await;
    let expected = "I have noted it.\n\n(No tool was called for this answer: nothing was saved, sent or changed.)";
    assert_eq!(
        (outcome.text.as_str(), &outcome.status),
        (expected, &TurnStatus::Answered)
    );

    let honest = claimed(&ScriptedModel::new().says("Noted!").says("I can't note it.")).await;
    assert_eq!(honest.text, "I can't note it.");
}

#[tokio::test]
async fn a_model_that_repeats_itself_reads_that_nothing_changes() {
    let look = |model: ScriptedModel| model.calls("look", json!({}));
    let model = look(look(look(ScriptedModel::new()))).says("Nothing.");
    let (told, _) = told(&model).await;
    assert!(told.contains("its result does not change"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn two_rounds_of_time_outs_end_the_turn() {
    let tool = look(Duration::from_secs(3600)).time_limit(Duration::from_secs(1));
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .calls("look", json!({}))
        .says("never");
    let host = AgentHost::in_memory().chat(model.clone()).tool(tool).build().unwrap();
    let outcome = host.agent().run(host.agent().request("s", "hi")).await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Failed(TurnFailure::ToolsTimedOut));
    assert_eq!(
        outcome.text,
        "The services that I need for this do not respond in time. Please try again in a few minutes. \
         Done before that: look (failed), look (failed)."
    );
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_that_change_something_end_the_turn_by_time_outs_alone() {
    let asked = |takes: Duration| async move {
        let pay = move |_: Look| async move {
            tokio::time::sleep(takes).await;
            Err::<&str, _>(ToolError::outcome_unknown("its process ended (exit status: 3)"))
        };
        let tool = tool("pay", pay).time_limit(Duration::from_secs(1));
        let model = ScriptedModel::new()
            .calls("pay", json!({}))
            .calls("pay", json!({}))
            .says("The payments crash.");
        let host = AgentHost::in_memory()
            .chat(model)
            .tool(tool)
            .policies(unguarded())
            .build()
            .unwrap();
        host.agent().run(host.agent().request("s", "hi")).await.unwrap()
    };
    assert_eq!(asked(Duration::ZERO).await.text, "The payments crash.");
    let outcome = asked(Duration::from_secs(2)).await;
    assert_eq!(outcome.status, TurnStatus::Failed(TurnFailure::ToolsTimedOut));
}

#[tokio::test]
async fn a_briefing_stands_just_before_the_message() {
    let model = ScriptedModel::new().says("Hello.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tool(look(Duration::ZERO))
        .briefing(Briefing::full())
        .clock(ManualClock::new(Timestamp::from_millis(1_782_000_000_000)))
        .build()
        .unwrap();
    host.agent().ask("s", "hi").await.unwrap();
    let texts: Vec<_> = model.requests()[0]
        .messages
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(texts.len(), 4);
    assert!(
        texts[1].starts_with("You can call tools in up to 50 rounds"),
        "{}",
        texts[1]
    );
    assert!(texts[2].starts_with("It is "), "{}", texts[2]);
    assert_eq!(texts[3], "hi");
}

#[tokio::test]
async fn a_change_of_the_prompts_beginning_is_counted_by_its_part() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let model = ScriptedModel::new().says("one").says("two").says("three");
    let host = AgentHost::in_memory().chat(model).build().unwrap();
    host.agent().ask("s", "hi").await.unwrap();
    host.agent().ask("s", "hi").await.unwrap();
    host.add_tool(look(Duration::ZERO)).unwrap();
    host.agent().ask("s", "hi").await.unwrap();
    let changes: Vec<_> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .filter(|(key, ..)| key.key().name() == "rockbot.prompt.prefix_changes")
        .map(|(key, _, _, value)| (key.key().labels().next().unwrap().value().to_owned(), value))
        .collect();
    assert_eq!(changes, [("tools".to_owned(), DebugValue::Counter(1))]);
}
