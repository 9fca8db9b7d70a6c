//! The client against a real server, if `ROCKBOT_TEST_LLM_URL` names one (a base URL, such as
//! that of a `llama-server` with a tool-capable template). Building such a server takes far
//! longer than all other checks together, so `ROCKBOT_TEST_REQUIRE` does not ask for it.
//!
//! `ROCKBOT_TEST_LLM_URL=http://127.0.0.1:8080/v1 cargo test -p rockbot-llm --test live`
//!
//! The client of embeddings asks the one that `ROCKBOT_TEST_EMBEDDINGS_URL` names, such as a
//! `llama-server --embeddings --pooling mean`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::{Arc, Mutex};

use rockbot_core::CallContext;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatErrorKind, ChatMessage, ChatRequest, ChatResponse, DeltaSink, FinishReason,
    ModelSettings, ToolChoice,
};
use rockbot_core::testing::conformance;
use rockbot_core::tool::{InMemoryToolRegistry, Owner, ToolRegistry, ToolView, tool};
use rockbot_llm::{OpenAiChat, OpenAiEmbeddings};

fn client() -> Option<OpenAiChat> {
    let Ok(endpoint) = std::env::var("ROCKBOT_TEST_LLM_URL") else {
        println!("SKIPPED: ROCKBOT_TEST_LLM_URL names no model server");
        return None;
    };
    Some(OpenAiChat::builder(endpoint, "local").build().unwrap())
}

fn question(text: &str) -> ChatRequest {
    ChatRequest::new([ChatMessage::user(text)]).with_settings(settings())
}

fn settings() -> ModelSettings {
    ModelSettings::new().with_max_output_tokens(100).with_temperature(0.0)
}

fn tools() -> ToolView {
    /// Tells the weather of a city.
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Weather {
        /// The city.
        #[expect(dead_code, reason = "only the schema is of interest")]
        city: String,
    }
    let registry = InMemoryToolRegistry::new();
    let weather = tool("get_weather", async |_: Weather| "sunny");
    registry.register(&Owner::new("test"), weather).unwrap();
    registry.snapshot().view().clone()
}

/// The answer, and its text as it was streamed if it was.
async fn ask(client: &OpenAiChat, request: &ChatRequest, is_streamed: bool) -> (ChatResponse, String) {
    let streamed = Arc::new(Mutex::new(String::new()));
    let sink = streamed.clone();
    let deltas = DeltaSink::new(move |delta| {
        if let ChatDelta::Text(text) = delta {
            sink.lock().unwrap().push_str(text);
        }
    });
    let call = ChatCall::new(request.clone(), CallContext::new("live")).with_deltas(is_streamed.then_some(deltas));
    let answer = client.chat(call).await.unwrap();
    let text = streamed.lock().unwrap().clone();
    (answer, text)
}

#[tokio::test]
async fn a_streamed_answer_is_the_whole_one() {
    let Some(client) = client() else { return };
    let request = question("Say hello in one short sentence.");
    let (whole, _) = ask(&client, &request, false).await;
    let (streamed, text) = ask(&client, &request, true).await;
    assert!(!whole.text.is_empty());
    assert_eq!(whole.finish, FinishReason::Stop);
    assert_eq!(text, streamed.text);
    let answers = [&whole, &streamed].map(|answer| (answer.text.clone(), answer.finish, answer.usage.unwrap().output));
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_accepted() {
    let Some(client) = client() else { return };
    let mut request = question("What is the weather in Paris?")
        .with_settings(settings().with_tool_choice(ToolChoice::Required))
        .with_tools(tools());
    for is_streamed in [false, true] {
        let (answer, _) = ask(&client, &request, is_streamed).await;
        assert_eq!(answer.finish, FinishReason::ToolCalls);
        assert_eq!(answer.tool_calls[0].name, "get_weather");
        let arguments: serde_json::Value = serde_json::from_str(&answer.tool_calls[0].arguments).unwrap();
        assert!(arguments["city"].as_str().unwrap().contains("Paris"), "{arguments}");
    }
    let (answer, _) = ask(&client, &request, true).await;
    request.messages.push(Arc::new(answer.to_message()));
    for call in &answer.tool_calls {
        let result = ChatMessage::tool(call.id.clone(), "18 degrees and sunny");
        request.messages.push(Arc::new(result));
    }
    request.tools = ToolView::default();
    // Small models do not make sense of the result; that the server takes it is what is tested.
    let (answer, _) = ask(&client, &request, false).await;
    assert!(!answer.text.is_empty());
}

#[tokio::test]
async fn a_request_beyond_the_context_window_is_told_apart() {
    let Some(client) = client() else { return };
    let call = ChatCall::new(question(&"word ".repeat(40_000)), CallContext::new("live"));
    let error = client.chat(call).await.unwrap_err();
    assert_eq!(error.kind(), ChatErrorKind::ContextOverflow, "{error}");
}

#[tokio::test]
async fn a_real_server_makes_vectors() {
    let Ok(endpoint) = std::env::var("ROCKBOT_TEST_EMBEDDINGS_URL") else {
        println!("SKIPPED: ROCKBOT_TEST_EMBEDDINGS_URL names no server of embeddings");
        return;
    };
    conformance::embedding_client(async || OpenAiEmbeddings::builder(&endpoint, "local").build().unwrap()).await;
}
