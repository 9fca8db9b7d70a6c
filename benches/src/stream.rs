//! A long streamed answer: read by the client, and by a minimal reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rockbot_core::chat::{ChatCall, ChatClient, ChatDelta, ChatMessage, ChatRequest, DeltaSink};
use rockbot_core::{CallContext, Secret};
use rockbot_llm::OpenAiChat;
use serde::Deserialize;
use serde_json::json;

/// Returns the events of an answer of `count` deltas, as a server sends them.
pub fn events(count: usize) -> Vec<u8> {
    let event = |delta: serde_json::Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        let event = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "mock-1", "choices": [choice]});
        format!("data: {event}\n\n")
    };
    let mut body: String = (0..count)
        .map(|index| event(json!({"content": format!("{:4} ", index % 1_000)}), None))
        .collect();
    body.push_str(&event(json!({}), Some("stop")));
    body.push_str("data: [DONE]\n\n");
    body.into_bytes()
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    content: Option<&'a str>,
}

/// Parses the JSON of each data line, and returns the length of the text. Nothing is assembled.
pub fn parse(body: &[u8]) -> usize {
    let lines = body.split(|byte| *byte == b'\n');
    let data = lines
        .filter_map(|line| line.strip_prefix(b"data: "))
        .filter(|data| *data != b"[DONE]");
    data.map(|data| {
        let event: Event<'_> = serde_json::from_slice(data).expect("JSON");
        let content = event.choices.first().and_then(|choice| choice.delta.content);
        content.unwrap_or_default().len()
    })
    .sum()
}

/// Reads the answer of the server at `base`, drops it, and returns its length.
pub async fn receive(http: &reqwest::Client, base: &str) -> usize {
    let request = http.post(format!("{base}/chat/completions")).body("{}");
    let mut response = request.send().await.expect("an answer");
    let mut length = 0;
    while let Some(bytes) = response.chunk().await.expect("bytes") {
        length += bytes.len();
    }
    length
}

/// Creates a client of the server at `base`.
pub fn client(base: &str) -> OpenAiChat {
    let builder = OpenAiChat::builder(base, "mock-1").api_key(Secret::from("test"));
    builder.build().expect("the endpoint is a URL")
}

/// Asks `client`, listens to the deltas, and returns the length of the text.
pub async fn ask(client: &OpenAiChat) -> usize {
    let heard = Arc::new(AtomicUsize::new(0));
    let hears = heard.clone();
    let deltas = DeltaSink::new(move |delta| {
        if let ChatDelta::Text(text) = delta {
            hears.fetch_add(text.len(), Ordering::Relaxed);
        }
    });
    let call = ChatCall::new(
        ChatRequest::new([ChatMessage::user("Count.")]),
        CallContext::new("bench"),
    )
    .with_deltas(deltas);
    let answer = client.chat(call).await.expect("an answer");
    assert_eq!(
        heard.load(Ordering::Relaxed),
        answer.text.len(),
        "the pieces make the answer"
    );
    answer.text.len()
}
