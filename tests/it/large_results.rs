//! Results that are too long for the conversation: kept in working memory, or cut, and the model knows which.

use rockbot::testing::ScriptedModel;
use rockbot_core::config::Config;
use rockbot_core::store::InMemoryWorkingMemory;
use rockbot_core::tool::{Tool, tool};
use rockbot_host::behavior::ModelBehaviors;
use rockbot_host::{AgentHost, AgentHostBuilder, Stores, TurnPolicies};
use serde_json::json;

use crate::support::Anything;

/// A tool that returns a long text with a fact in it.
fn dump() -> Tool {
    let filler = "Nothing of interest stands here.\n\n".repeat(5_000);
    let text = format!("# Beginning\n\n{filler}# Treasure\n\nThe gold lies under the old oak.\n\n# End\n\n{filler}");
    tool("dump", move |_: Anything| std::future::ready(text.clone()))
        .description("Dumps everything.")
        .pure()
}

fn host(model: &ScriptedModel) -> AgentHostBuilder {
    AgentHost::in_memory().chat(model.clone()).tool(dump())
}

/// Returns the last result as the model read it.
fn read(model: &ScriptedModel) -> String {
    model
        .requests()
        .last()
        .unwrap()
        .messages
        .last()
        .unwrap()
        .text()
        .into_owned()
}

#[tokio::test]
async fn a_fact_in_a_long_result_is_found_by_searching_it() {
    let model = ScriptedModel::new()
        .calls("dump", json!({}))
        .calls("search_tool_output", json!({ "query": "where is the gold" }))
        .says("Under the oak.");
    let host = host(&model)
        .stores(Stores::new().with_working_memory(InMemoryWorkingMemory::new()))
        .build()
        .unwrap();
    host.agent().ask("s", "Where is the gold?").await.unwrap();
    let index = model.requests()[1].messages.last().unwrap().text().into_owned();
    assert!(
        index.starts_with("Tool result for 'dump' is large (") && index.contains("| Treasure |"),
        "{index}"
    );
    assert!(index.len() < 5_000, "{} bytes", index.len());
    assert!(
        read(&model).contains("The gold lies under the old oak."),
        "{}",
        read(&model)
    );
}

#[tokio::test]
async fn without_working_memory_a_long_result_is_cut_and_says_so() {
    let model = ScriptedModel::new().calls("dump", json!({})).says("I do not know.");
    host(&model)
        .build()
        .unwrap()
        .agent()
        .ask("s", "Where is the gold?")
        .await
        .unwrap();
    let read = read(&model);
    assert!(
        read.ends_with("chars omitted]") && read.chars().count() < 64_100,
        "{}",
        &read[read.len() - 60..]
    );
}

#[tokio::test]
async fn a_behavior_sets_the_length_for_its_model() {
    let model = ScriptedModel::new()
        .with_id("tiny-1b")
        .calls("dump", json!({}))
        .says("I do not know.");
    let text = r#"{ "ModelBehaviors": { "Models": { "tiny": { "ToolResultChunkingThreshold": 1000 } } } }"#;
    let config = Config::new().with_text("agent.json", text).unwrap();
    let behaviors = ModelBehaviors::read(&config).unwrap();
    let host = host(&model)
        .policies(TurnPolicies::new().with_model_behaviors(behaviors))
        .build()
        .unwrap();
    host.agent().ask("s", "Where is the gold?").await.unwrap();
    assert!(read(&model).chars().count() < 1_100);
}
