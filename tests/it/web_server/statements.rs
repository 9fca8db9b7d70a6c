//! The statements of an answer that rest on text of others alone, at each interface.

use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::tool;
use rockbot_host::AgentHost;
use serde_json::{Value, json};

use super::client::Events;
use super::{Nothing, Serving, server};

/// A server whose model reads a page for each message, and answers from it.
async fn reading(messages: usize) -> Serving {
    let page = tool("get_page", |_: Nothing| async { "The rent is 1250 euros." });
    let model = (0..messages).fold(ScriptedModel::new(), |model, _| {
        model
            .calls("get_page", json!({}))
            .says("It costs 1250 euros. Anything else?")
    });
    Serving::start(AgentHost::in_memory().chat(model).tool(page.pure()).add(server())).await
}

fn expected() -> Value {
    json!([{"statement": "It costs 1250 euros.", "source": "get_page"}])
}

#[tokio::test]
async fn each_interface_marks_the_statements_of_others() {
    let serving = reading(5).await;
    let ann = serving.ann();
    let asked = "What does the flat cost?";

    let path = "/v1/chat/completions";
    let mut body = json!({"model": "agent", "messages": [{"role": "user", "content": asked}]});
    let whole = ann.post(path, &body).await.json();
    assert_eq!(whole["choices"][0]["message"]["outside_statements"], expected());
    body["stream"] = json!(true);
    let streamed = ann.post(path, &body).await.body;
    let chunks = streamed.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks = chunks.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let marked: Vec<_> = chunks
        .map(|chunk| chunk["choices"][0]["delta"]["outside_statements"].clone())
        .filter(|marked| !marked.is_null())
        .collect();
    assert_eq!(marked, [expected()]);

    let body = json!({"model": "agent", "input": asked});
    let whole = ann.post("/v1/responses", &body).await.json();
    assert_eq!(whole["output"][0]["outside_statements"], expected());

    let posted = ann
        .post("/api/sessions/flat/messages", &json!({"content": asked}))
        .await
        .json();
    let path = format!("/api/turns/{}/events", posted["turn"].as_str().unwrap());
    let last = ann.events(&path, None).await.until("final").await.pop().unwrap();
    assert_eq!(last.data["outcome"]["outsideStatements"], expected());

    let input = json!({
        "threadId": "flat", "runId": "r1", "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{"id": "m1", "role": "user", "content": asked}],
    });
    let response = ann.json("POST", "/agui", &input).send().await.unwrap();
    let last = Events::of(response).all().await.pop().unwrap();
    assert_eq!(last.data["result"]["outsideStatements"], expected());
    serving.stop().await;
}
