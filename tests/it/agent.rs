//! Asking an agent.

use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::tool;
use rockbot_host::AgentHost;
use serde_json::json;

/// Adds two numbers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::test]
async fn a_tool_call_and_an_answer() {
    let model = ScriptedModel::new()
        .calls("add", json!({"a": 2, "b": 3}))
        .says("It is 5.");
    let host = AgentHost::in_memory()
        .chat(model.clone())
        .tool(tool("add", |Add { a, b }: Add| async move { (a + b).to_string() }).pure())
        .build()
        .unwrap();
    let answer = host.agent().ask("s", "2 + 3?").await.unwrap();
    assert_eq!(answer.text, "It is 5.");
    assert_eq!(model.requests()[1].messages.last().unwrap().text(), "5");
    model.assert_complete();
}
