//! Tiers: the selection for a message, the escalation within a turn, and the routing log of both.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use rockbot::chat::KeywordTierSelector;
use rockbot::testing::ScriptedModel;
use rockbot_core::Clock;
use rockbot_core::chat::{ChatResponse, MicroUsd, ModelTier};
use rockbot_core::testing::ManualClock;
use rockbot_core::tool::{Effect, ToolError, tool};
use rockbot_core::turn::{TierDecision, TierSelector, TurnOutcome, TurnRequest, TurnSoFar};
use rockbot_host::routing::{RoutingEntry, RoutingLog};
use rockbot_host::{AgentHost, AgentHostBuilder, Stores};
use serde_json::json;
use tokio::time::sleep;

use crate::support::log::Log;
use crate::support::{Anything, host_of, noting_tool, settle};

/// The tier that a message is asked with.
async fn tier(selector: impl TierSelector, request: TurnRequest) -> Option<ModelTier> {
    let model = ScriptedModel::new().says("Hello.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tier_selector(selector)
        .build()
        .unwrap();
    host.agent().run(request).await.unwrap();
    model.requests()[0].tier
}

fn request(text: &str) -> TurnRequest {
    TurnRequest::new("s", "m", text)
}

#[tokio::test]
async fn a_message_that_names_no_tier_goes_where_the_selector_says() {
    let simple = request("What is the capital of France?");
    assert_eq!(
        tier(KeywordTierSelector::default(), simple.clone()).await,
        Some(ModelTier::Low)
    );
    let named = simple.with_tier(ModelTier::High);
    assert_eq!(tier(KeywordTierSelector::default(), named).await, Some(ModelTier::High));
}

#[tokio::test]
async fn a_selector_that_breaks_down_selects_nothing() {
    struct Broken;
    #[async_trait]
    impl TierSelector for Broken {
        async fn select(&self, _: &TurnRequest) -> TierDecision {
            panic!("no idea")
        }
    }
    assert_eq!(tier(Broken, request("Hello")).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_selector_sees_the_request_and_may_take_its_time() {
    struct Asks(Duration);
    #[async_trait]
    impl TierSelector for Asks {
        async fn select(&self, request: &TurnRequest) -> TierDecision {
            sleep(self.0).await;
            match request.principal.as_str() {
                "ann" => TierDecision::new(ModelTier::High, 1.0),
                _ => TierDecision::new(ModelTier::Low, 0.0),
            }
        }
    }
    let of_ann = request("Hello").with_principal("ann");
    let second = Duration::from_secs(1);
    assert_eq!(tier(Asks(second), of_ann.clone()).await, Some(ModelTier::High));
    assert_eq!(tier(Asks(second), request("Hello")).await, Some(ModelTier::Low));
    assert_eq!(tier(Asks(11 * second), of_ann).await, None, "it took too long");
}

/// A selector that gives every message the same tier; it escalates as every selector does.
struct Always(ModelTier);

#[async_trait]
impl TierSelector for Always {
    async fn select(&self, _: &TurnRequest) -> TierDecision {
        TierDecision::new(self.0, 0.25).because("it is said")
    }
}

/// A host with the tools `look`, which is pure, `send`, which changes something, and `fail`.
fn host(model: &ScriptedModel) -> AgentHostBuilder {
    let fail = tool("fail", |_: Anything| async {
        Err::<String, _>(ToolError::execution_failed("no"))
    });
    host_of(model)
        .tool(noting_tool("look").0)
        .tool(noting_tool("send").0.effect(Effect::Mutating))
        .tool(fail.description("Fails.").pure())
}

fn calling(tools: &[&str]) -> ScriptedModel {
    let model = tools.iter().fold(ScriptedModel::new(), |model, name| {
        model.calls(*name, json!({})).with_cost(MicroUsd(10))
    });
    model.says("done").with_cost(MicroUsd(100))
}

fn tiers(model: &ScriptedModel) -> Vec<Option<ModelTier>> {
    model.requests().iter().map(|request| request.tier).collect()
}

const LOW: Option<ModelTier> = Some(ModelTier::Low);
const BALANCED: Option<ModelTier> = Some(ModelTier::Balanced);
const HIGH: Option<ModelTier> = Some(ModelTier::High);

#[tokio::test]
async fn a_turn_that_turns_out_hard_goes_on_with_balanced() {
    let check = async |selected, tools: &[&str], expected: &[Option<ModelTier>]| {
        let model = calling(tools);
        let host = host(&model).tier_selector(Always(selected)).build().unwrap();
        host.agent().ask("s", "go").await.unwrap();
        assert_eq!(tiers(&model), expected, "{tools:?}");
    };
    check(ModelTier::Low, &["look", "fail", "look"], &[LOW; 4]).await;
    check(ModelTier::Low, &["send", "look"], &[LOW, BALANCED, BALANCED]).await;
    check(
        ModelTier::Low,
        &["fail", "fail", "look"],
        &[LOW, LOW, BALANCED, BALANCED],
    )
    .await;
    check(ModelTier::High, &["send", "fail", "fail"], &[HIGH; 4]).await;
}

#[tokio::test]
async fn a_tier_that_the_message_names_is_kept() {
    let model = calling(&["send", "fail", "fail"]);
    let host = host(&model).tier_selector(Always(ModelTier::Low)).build().unwrap();
    let named = request("go").with_tier(LOW);
    host.agent().run(named).await.unwrap();
    assert_eq!(tiers(&model), [LOW; 4]);
    assert_eq!(host.routing_log().unwrap().entries().unwrap(), []);
}

#[tokio::test]
async fn a_selector_only_raises() {
    struct Falls;
    #[async_trait]
    impl TierSelector for Falls {
        async fn select(&self, _: &TurnRequest) -> TierDecision {
            TierDecision::new(ModelTier::Balanced, 0.5)
        }
        fn escalate(&self, _: ModelTier, so_far: TurnSoFar) -> Option<ModelTier> {
            assert!(so_far.failed_calls < 2, "this selector breaks down");
            LOW
        }
    }
    let model = calling(&["fail", "fail", "fail"]);
    let host = host(&model).tier_selector(Falls).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    assert_eq!(tiers(&model), [BALANCED; 4]);
}

#[tokio::test]
async fn an_escalation_is_counted_and_logged() {
    let recorder = DebuggingRecorder::new();
    let log = Log::default();
    let snapshotter = recorder.snapshotter();
    let _metrics = metrics::set_default_local_recorder(&recorder);
    let _log = tracing::subscriber::set_default(log.clone());
    let model = calling(&["send", "send"]);
    let host = host(&model).tier_selector(Always(ModelTier::Low)).build().unwrap();
    host.agent().ask("s", "go").await.unwrap();
    let counted = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .find_map(|(key, _, _, value)| (key.key().name() == "rockbot.agent.tier_escalations").then_some(value));
    assert_eq!(counted, Some(DebugValue::Counter(1)));
    let told = log.lines();
    let told: Vec<_> = told.iter().filter(|line| line.contains("escalated")).collect();
    assert_eq!(told, ["message=Tier escalated Low→Balanced mid-turn"]);
}

fn on_disk(model: &ScriptedModel, folder: &Path, selector: impl TierSelector) -> AgentHost {
    let host = host(model).tier_selector(selector).data_dir(folder);
    host.clock(ManualClock::default()).build().unwrap()
}

#[tokio::test]
async fn a_replay_of_the_journal_takes_the_same_tier_and_costs_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let model = calling(&["send", "look"]);
    let host = on_disk(&model, folder.path(), Always(ModelTier::Low));
    let outcome = host.agent().ask("s", "go").await.unwrap();
    let replayed = host.trace(&outcome.turn).await.unwrap().unwrap();
    assert_eq!(replayed.outcome().unwrap(), outcome);
    assert_eq!((replayed.selected_tier(), replayed.escalated_tier()), (LOW, BALANCED));
    let costs = outcome
        .tiers
        .iter()
        .map(|(tier, spent)| (*tier, spent.calls, spent.price()));
    let expected = [
        (ModelTier::Low, 1, Some(MicroUsd(10))),
        (ModelTier::Balanced, 2, Some(MicroUsd(110))),
    ];
    assert_eq!(costs.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_resumed_turn_keeps_the_tier_that_it_went_on_with() {
    /// With it nothing is ever hard.
    struct Stays;
    #[async_trait]
    impl TierSelector for Stays {
        async fn select(&self, _: &TurnRequest) -> TierDecision {
            TierDecision::new(ModelTier::High, 1.0)
        }
        fn escalate(&self, _: ModelTier, _: TurnSoFar) -> Option<ModelTier> {
            None
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new()
        .calls("send", json!({}))
        .with_cost(MicroUsd(10))
        .hangs();
    let first = on_disk(&model, folder.path(), Always(ModelTier::Low));
    let agent = first.agent().clone();
    let asking = tokio::spawn(async move { agent.run(request("go")).await });
    while model.requests().len() < 2 {
        settle().await;
    }
    first.shutdown(Duration::from_secs(1)).await;
    drop((first, asking.await));

    let model = calling(&[]);
    let second = on_disk(&model, folder.path(), Stays);
    second.resume().await.unwrap();
    let outcome = second.agent().outcome(&request("go").turn_id()).await.unwrap();
    assert_eq!(tiers(&model), [BALANCED]);
    // The question that the shutdown cut off counts, and nothing is known of its price.
    let spent = outcome.spent();
    assert_eq!((spent.calls, spent.cost, spent.unpriced), (3, MicroUsd(110), 1));
    let entries = second.routing_log().unwrap().entries().unwrap();
    let told: Vec<_> = entries.iter().map(|entry| (entry.tier, &entry.reasons[0])).collect();
    assert_eq!(told, [(ModelTier::Low, &"selected before a restart".to_owned())]);
}

/// Returns the log's entry for the one turn that ended like this.
fn entry(outcome: &TurnOutcome, text: &str, tier: ModelTier, escalated_to: Option<ModelTier>) -> RoutingEntry {
    let decision = TierDecision::new(tier, 0.25).because("it is said");
    let result = json!({
        "status": "answered",
        "escalatedTo": escalated_to.map(ModelTier::name),
        "modelCalls": outcome.model_calls,
        "inputTokens": outcome.usage.input,
        "outputTokens": outcome.usage.output,
        "costMicroUsd": outcome.spent().price(),
        "latencyMs": 0,
    });
    let mut entry = RoutingEntry::new(ManualClock::default().now(), "user-message", text, &decision);
    entry.result = Some(serde_json::from_value(result).unwrap());
    entry
}

#[tokio::test(start_paused = true)]
async fn what_came_of_each_decision_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let model = calling(&["send"]).answers(ChatResponse::text("cheap"));
    let host = on_disk(&model, folder.path(), Always(ModelTier::Low));
    let hard = host.agent().ask("s", "send it").await.unwrap();
    let easy = host.agent().ask("s", "hi").await.unwrap();
    let expected = [
        entry(&hard, "send it", ModelTier::Low, BALANCED),
        entry(&easy, "hi", ModelTier::Low, None),
    ];
    assert_eq!(host.routing_log().unwrap().entries().unwrap(), expected);
    let file = RoutingLog::new(folder.path().join("tier-routing-log.jsonl"));
    assert_eq!(file.entries().unwrap(), expected);
    assert_eq!(expected[1].result.as_ref().unwrap().cost_micro_usd, None);
}

#[tokio::test]
async fn a_log_of_ones_own_takes_the_place_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let model = calling(&[]);
    let host = host(&model)
        .tier_selector(Always(ModelTier::High))
        .stores(Stores::new().with_routing_log(RoutingLog::in_memory().without_previews()))
        .data_dir(folder.path())
        .build()
        .unwrap();
    host.agent().ask("s", "a secret").await.unwrap();
    let entries = host.routing_log().unwrap().entries().unwrap();
    assert_eq!((entries.len(), entries[0].prompt_preview.as_str()), (1, ""));
    assert!(!folder.path().join("tier-routing-log.jsonl").exists());
    assert!(host_of(&model).build().unwrap().routing_log().is_none());
}
