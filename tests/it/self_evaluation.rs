//! Answers that are looked at once more: judged, sent back, followed up. Whatever goes wrong with
//! the judge, the answer stands.

use std::sync::Arc;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use rockbot::testing::ScriptedModel;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatErrorKind, ChatRequest, ModelTier, Provenance};
use rockbot_core::config::Config;
use rockbot_core::context::Origin;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::tool::{Tool, tool};
use rockbot_core::turn::{TurnOutcome, TurnRequest};
use rockbot_host::settings::HostSettings;
use rockbot_host::turn::Evaluation;
use rockbot_host::{AgentHost, Briefing, TurnPolicies};
use serde_json::json;

use crate::support::unguarded;

/// Sends a mail.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SendMail {}

fn mail() -> Tool {
    tool("send_mail", |_: SendMail| async { "sent" })
}

/// Hands work over to another agent.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct HandOver {}

fn hand_over() -> Tool {
    tool("hand_over", |_: HandOver| async { "started" }).delegates()
}

const BOTH: Evaluation = Evaluation::OFF
    .with_max_completion_reprompts(2)
    .with_max_follow_up_passes(1);

const JUDGED: Evaluation = BOTH.with_max_follow_up_passes(0);

/// Runs the turn of "Send the report to Ada.", and returns its end and the counters.
async fn check(model: ScriptedModel, evaluation: Evaluation, expected: &str, counted: &[&str]) -> TurnOutcome {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(model.clone())
        .tool(mail())
        .tool(hand_over())
        .policies(TurnPolicies::new().with_evaluation(evaluation))
        .build()
        .unwrap();
    let outcome = host.agent().ask("s", "Send the report to Ada.").await.unwrap();
    assert_eq!(outcome.text, expected);
    model.assert_complete();
    let mut counts: Vec<_> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .filter(|(.., value)| matches!(value, DebugValue::Counter(1..)))
        .filter_map(|(key, ..)| key.key().name().strip_prefix("rockbot.agent.").map(str::to_owned))
        .filter(|name| name != "turns")
        .collect();
    counts.sort();
    assert_eq!(counts, counted);
    outcome
}

fn verdict(complete: bool, reason: &str) -> String {
    json!({ "complete": complete, "reason": reason }).to_string()
}

#[tokio::test]
async fn an_incomplete_answer_is_sent_back_with_what_is_missing() {
    let model = ScriptedModel::new()
        .says("I'll send it right away.")
        .says(verdict(false, "No mail was sent."))
        .calls("send_mail", json!({}))
        .says("Sent the report to Ada.")
        .says(verdict(true, ""));
    let seen = model.clone();
    let counted = ["completion_check.complete", "completion_check.incomplete"];
    check(model, JUDGED, "Sent the report to Ada.", &counted).await;
    let requests = seen.requests();
    let judge = &requests[1];
    assert_eq!((judge.tier, judge.tools.is_empty()), (Some(ModelTier::Low), true));
    let question = judge.messages[1].text().into_owned();
    let settings = judge.settings.as_ref().unwrap();
    assert_eq!(
        (settings.temperature, settings.max_output_tokens),
        (Some(0.0), Some(1_000))
    );
    assert_eq!(
        question,
        "## Original user request\nSend the report to Ada.\n\n## Tool calls\nnone\n\n## Agent response\nI'll send it right away."
    );
    let told = requests[2].messages.last().unwrap().text().into_owned();
    let internal = "[Internal check, not from the user. Do not mention it.] ";
    let expected = format!("{internal}Your answer does not complete the request: No mail was sent. Go on:");
    assert!(told.starts_with(&expected), "{told}");
    assert!(
        requests[4].messages[1]
            .text()
            .contains(r#"- "send_mail" "{}" → "sent""#),
        "the judge sees what was called"
    );
}

#[tokio::test]
async fn the_judge_is_asked_so_often_and_no_more() {
    let model = ScriptedModel::new()
        .says("I will do it.")
        .says(verdict(false, "Nothing was done."))
        .says("I will do it soon.")
        .says(verdict(false, "Nothing was done."))
        .says("I will do it tomorrow.");
    check(
        model,
        JUDGED,
        "I will do it tomorrow.",
        &["completion_check.incomplete"],
    )
    .await;
}

#[tokio::test]
async fn a_judge_that_fails_or_babbles_lets_the_answer_stand() {
    let fails = ScriptedModel::new()
        .says("I will do it.")
        .fails(ChatErrorKind::Overloaded);
    check(fails, JUDGED, "I will do it.", &[]).await;
    let babbles = ScriptedModel::new().says("I will do it.").says("Well, perhaps.");
    check(babbles, JUDGED, "I will do it.", &["completion_check.complete"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_hangs_does_not_hold_up_the_answer() {
    let hangs = ScriptedModel::new().says("I will do it.").hangs();
    check(hangs, JUDGED, "I will do it.", &[]).await;
}

#[tokio::test]
async fn a_follow_up_that_did_something_is_added() {
    let worth = json!({ "hasFollowUps": true, "prompt": "Tell Bob, too." }).to_string();
    let begun = || {
        ScriptedModel::new()
            .calls("send_mail", json!({}))
            .says("Sent.")
            .says(verdict(true, ""))
            .says(worth.clone())
    };
    let counted = ["completion_check.complete", "follow_up.triggered"];
    let did = begun().calls("send_mail", json!({})).says("Bob knows.");
    let outcome = check(did, BOTH, "Sent.\n\nBob knows.", &counted).await;
    assert_eq!(outcome.calls.len(), 2);
    check(begun().says("Bob might like to know."), BOTH, "Sent.", &counted).await;
    check(begun().fails(ChatErrorKind::Overloaded), BOTH, "Sent.", &counted).await;
}

#[tokio::test]
async fn nothing_more_to_do_is_counted_too() {
    let model = ScriptedModel::new()
        .calls("send_mail", json!({}))
        .says("Sent.")
        .says(verdict(true, ""))
        .says(json!({ "hasFollowUps": false, "prompt": "" }).to_string());
    check(model, BOTH, "Sent.", &["completion_check.complete", "follow_up.none"]).await;
}

#[tokio::test]
async fn verdicts_are_no_part_of_the_conversation() {
    let model = ScriptedModel::new()
        .says("I will do it.")
        .says(verdict(true, "SECRET VERDICT"))
        .says("Hello again.");
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(model.clone())
        .tool(mail())
        .policies(TurnPolicies::new().with_evaluation(JUDGED))
        .build()
        .unwrap();
    host.agent().ask("s", "Send the report to Ada.").await.unwrap();
    host.agent().ask("s", "What is new in the world?").await.unwrap();
    let texts: Vec<_> = model.requests()[2]
        .messages
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(
        texts[1..],
        ["Send the report to Ada.", "I will do it.", "What is new in the world?"]
    );
}

#[tokio::test]
async fn the_models_own_notes_are_no_work() {
    // A list of tasks is written and nothing else is done: the promise is looked at all the same.
    let model = ScriptedModel::new()
        .calls("task_create", json!({ "items": ["Send the report"] }))
        .says("I'll send it right away.")
        .says(verdict(true, ""));
    let seen = model.clone();
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(model)
        .tool(mail())
        .policies(TurnPolicies::new().with_evaluation(JUDGED))
        .briefing(Briefing::full())
        .build()
        .unwrap();
    host.agent().ask("s", "What is new?").await.unwrap();
    seen.assert_complete();
    // Nor do they make a change that has to be looked at.
    let model = ScriptedModel::new()
        .calls("save_memory", json!({}))
        .says("The report on Ada is a long one.");
    let remember = tool("save_memory", |_: SendMail| async { "saved" });
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(model.clone())
        .tool(remember)
        .policies(TurnPolicies::new().with_evaluation(JUDGED));
    host.build().unwrap().agent().ask("s", "What is new?").await.unwrap();
    model.assert_complete();
}

#[tokio::test]
async fn a_turn_that_delegated_work_is_not_judged() {
    let model = ScriptedModel::new()
        .calls("hand_over", json!({}))
        .says("I'll send it as soon as it is written.");
    check(model, BOTH, "I'll send it as soon as it is written.", &[]).await;
}

#[tokio::test]
async fn the_turns_of_schedules_and_of_other_turns_are_not_judged() {
    let long = "I will send the report to Ada as soon as I have found out how to do that.";
    let ask = || TurnRequest::new("s", "m", "Send the report to Ada.");
    let calling = ask().turn_id();
    let requests = [
        (ask(), true),
        (ask().with_origin(Origin::Bus), true),
        (ask().with_origin(Origin::Scheduled), false),
        (ask().with_origin(Origin::Subagent), false),
        (ask().with_parent(calling.clone(), 1), false),
        (ask().with_parent(calling, 1).with_origin(Origin::Subagent), false),
    ];
    for (request, is_judged) in requests {
        let named = format!("{:?}, parent {:?}", request.origin, request.parent);
        let model = ScriptedModel::new().says(long);
        let model = if is_judged {
            model.says(verdict(true, ""))
        } else {
            model
        };
        let host = AgentHost::in_memory()
            .policies(unguarded())
            .chat(model.clone())
            .tool(mail())
            .policies(TurnPolicies::new().with_evaluation(JUDGED))
            .build()
            .unwrap();
        let outcome = host.agent().run(request).await.unwrap();
        assert_eq!(outcome.text, long, "{named}");
        assert_eq!(model.requests().len(), if is_judged { 2 } else { 1 }, "{named}");
    }
}

#[tokio::test]
async fn an_agent_that_is_called_as_a_tool_is_not_judged_and_its_caller_is() {
    let model = ScriptedModel::new()
        .calls("helper", json!({"task": "Send the report to Ada."}))
        .says("I'll send it right away.")
        .says("I'll send it right away.")
        .says(verdict(true, ""));
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(model.clone())
        .tool(mail())
        .policies(TurnPolicies::new().with_evaluation(JUDGED))
        .build()
        .unwrap();
    host.add_tool(host.agent().as_tool("helper", "Helps.")).unwrap();
    host.agent().ask("s", "Send the report to Ada.").await.unwrap();
    let judged = |request: &Arc<ChatRequest>| request.messages[1].text().starts_with("## Original user request");
    let requests = model.requests();
    assert_eq!(
        requests.iter().map(judged).collect::<Vec<_>>(),
        [false, false, false, true]
    );
}

#[tokio::test]
async fn follow_ups_go_on_while_they_do_something_and_as_often_as_is_set() {
    let worth = |prompt: &str| json!({ "hasFollowUps": true, "prompt": prompt }).to_string();
    let begun = || {
        ScriptedModel::new()
            .calls("send_mail", json!({}))
            .says("Sent.")
            .says(worth("Tell Bob, too."))
            .calls("send_mail", json!({}))
            .says("Bob knows.")
    };
    let twice = Evaluation::OFF.with_max_follow_up_passes(2);
    let both = begun()
        .says(worth("Tell Eve, too."))
        .calls("send_mail", json!({}))
        .says("Eve knows.");
    let seen = both.clone();
    let triggered = ["follow_up.triggered"];
    check(both, twice, "Sent.\n\nBob knows.\n\nEve knows.", &triggered).await;
    let judge = seen.requests()[5].messages[1].text().into_owned();
    assert!(judge.ends_with("## Agent response\nSent.\n\nBob knows."), "{judge}");

    let none = begun().says(json!({ "hasFollowUps": false, "prompt": "" }).to_string());
    let counted = ["follow_up.none", "follow_up.triggered"];
    check(none, twice, "Sent.\n\nBob knows.", &counted).await;
    let fails = begun().fails(ChatErrorKind::Overloaded);
    check(fails, twice, "Sent.\n\nBob knows.", &triggered).await;
    let idle = begun().says(worth("Tell Eve, too.")).says("Eve might like to know.");
    check(idle, twice, "Sent.\n\nBob knows.", &triggered).await;
}

/// A source that always has a record and guidance.
#[derive(Debug)]
struct Known;

#[async_trait::async_trait]
impl ContextSource for Known {
    fn name(&self) -> &str {
        "known"
    }

    async fn gather(&self, _: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let record = ContextItem::new("Records", "- RECORD", "always", Provenance::MODEL);
        let guidance = ContextItem::new("Skill mail", "GUIDANCE", "always", Provenance::USER).as_guidance();
        Ok(vec![record, guidance])
    }
}

#[tokio::test]
async fn judges_read_the_users_words_the_calls_and_the_answer_and_no_records() {
    let model = ScriptedModel::new()
        .calls("send_mail", json!({}))
        .says("Sent.")
        .says(verdict(true, ""))
        .says(json!({ "hasFollowUps": false, "prompt": "" }).to_string());
    let host = AgentHost::in_memory()
        .policies(unguarded())
        .chat(model.clone())
        .tool(mail())
        .context_source(Known)
        .briefing(Briefing::full())
        .policies(TurnPolicies::new().with_evaluation(BOTH))
        .build()
        .unwrap();
    host.agent().ask("s", "Send the report to Ada.").await.unwrap();
    let requests = model.requests();
    assert!(
        requests[0]
            .messages
            .iter()
            .any(|message| message.text().contains("RECORD"))
    );
    let expected = "## Original user request\nSend the report to Ada.\n\n## Tool calls\n\
        - \"send_mail\" \"{}\" → \"sent\"\n\n## Agent response\nSent.";
    for judge in &requests[2..] {
        assert_eq!(judge.messages[1].text(), expected);
    }
}

#[tokio::test]
async fn a_host_with_settings_asks_no_judge_unless_they_say_so() {
    for (text, asked) in [("{}", 1), (r#"{"AgentHost": {"MaxCompletionReprompts": 1}}"#, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::new().with_text("agent.json", text).unwrap();
        let settings = HostSettings::read(&config, folder.path()).unwrap();
        let model = ScriptedModel::new().says("I will do it.").says(verdict(true, ""));
        let host = AgentHost::in_memory()
            .policies(unguarded())
            .settings(&settings)
            .chat(model.clone())
            .tool(mail())
            .build()
            .unwrap();
        host.agent().ask("s", "Send the report to Ada.").await.unwrap();
        assert_eq!(model.requests().len(), asked);
    }
}
