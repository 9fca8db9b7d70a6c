//! Results that are too long for the conversation: kept in working memory, or cut, and the model
//! knows which.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use rockbot::testing::ScriptedModel;
use rockbot_core::CallContext;
use rockbot_core::config::Config;
use rockbot_core::store::InMemoryWorkingMemory;
use rockbot_core::tool::{
    ResultChunks, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration, tool,
};
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

/// A tool whose results are kept under a name of their own: a page with fewer sections each time
/// it is read.
#[derive(Debug, Default)]
struct Page(AtomicU32);

#[async_trait]
impl ToolExecutor for Page {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let section = |number: u32| format!("## Part {number}\n\n{}\n", "Words of a page. ".repeat(150));
        let read = self.0.fetch_add(1, Ordering::Relaxed);
        let text: String = (0..[5, 4, 1][read as usize]).map(section).collect();
        Ok(request
            .succeed(text)
            .with_chunks(ResultChunks::new("web-https___example.org").with_max_len(3_000)))
    }
}

#[tokio::test]
async fn a_tool_says_how_its_long_results_are_kept() {
    let key = "session/s/web-https___example.org-chunk3";
    let model = ScriptedModel::new()
        .calls("page", json!({}))
        .calls("get_from_working_memory", json!({ "key": key }))
        .says("Read.");
    let page = ToolRegistration::new("page", "Reads a page.", json!({"type": "object"}));
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tool(Tool::new(page, Page::default()).pure())
        .stores(Stores::new().with_working_memory(InMemoryWorkingMemory::new()))
        .build()
        .unwrap();
    host.agent().ask("s", "What does it say?").await.unwrap();
    let index = model.requests()[1].messages.last().unwrap().text().into_owned();
    assert!(index.contains("`session/s/web-https___example.org-index`"), "{index}");
    assert!(index.contains(&format!("| 3 | Part 3 | `{key}` |")), "{index}");
    let chunk = read(&model);
    assert!(chunk.contains("## Part 3") && !chunk.contains("Part 4"), "{chunk}");
    assert!(chunk.chars().count() < 3_500, "{}", chunk.chars().count());
}

#[tokio::test]
async fn the_chunks_of_an_earlier_result_of_the_same_name_are_replaced() {
    let key = |end: &str| json!({ "key": format!("session/s/web-https___example.org-{end}") });
    let model = ScriptedModel::new()
        .calls("page", json!({}))
        .calls("get_from_working_memory", key("chunk4"))
        .calls("page", json!({}))
        .calls("get_from_working_memory", key("chunk4"))
        .calls("get_from_working_memory", key("chunk3"))
        .calls("page", json!({}))
        .calls("get_from_working_memory", key("chunk3"))
        .calls("get_from_working_memory", key("index"))
        .says("Read.");
    let page = ToolRegistration::new("page", "Reads a page.", json!({"type": "object"}));
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tool(Tool::new(page, Page::default()).pure())
        .stores(Stores::new().with_working_memory(InMemoryWorkingMemory::new()))
        .build()
        .unwrap();
    host.agent().ask("s", "What does it say?").await.unwrap();
    let results: Vec<_> = model
        .requests()
        .iter()
        .skip(1)
        .map(|request| request.messages.last().unwrap().text().into_owned())
        .collect();
    let found: Vec<_> = results.iter().map(|result| result.contains("## Part ")).collect();
    // Five sections, then four, then one, which stays in the conversation.
    assert_eq!(
        found,
        [false, true, false, false, true, true, false, false],
        "{results:#?}"
    );
}
