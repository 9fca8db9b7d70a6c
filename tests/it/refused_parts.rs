//! Images and schemas that a model server does not take: the model gets them in words, and the
//! refusal is remembered.

use rockbot::agent::AgentHost;
use rockbot::chat::ModelGateway;
use rockbot::config::Config;
use rockbot::content::{Content, MediaPart};
use serde_json::Value;

use crate::support::dialects;
use crate::support::model_server::ModelServer;
use crate::support::weather::{OSLO, Weather, oslo};

const PROVIDERS: [&str; 3] = ["openai", "openai-responses", "anthropic"];

/// A host in memory whose model is at `server`, with these settings of its tier.
fn host(server: &ModelServer, provider: &str, settings: &str) -> AgentHost {
    let text = format!(
        r#"
        [LLM.Balanced]
        Provider = "{provider}"
        Endpoint = "{}/v1"
        ApiKey = "k"
        ModelId = "test"
        {settings}
        "#,
        server.endpoint
    );
    let config = Config::new().with_text("agent.toml", &text).unwrap();
    let models = ModelGateway::from_config(&config).unwrap();
    AgentHost::in_memory().chat(models).build().unwrap()
}

fn question() -> Content {
    Content::from("Who is this?").with_image(MediaPart::bytes("image/png", vec![1, 2, 3]).with_name("cat.png"))
}

/// Starts a server that refuses a request with one of `words` in its body, for the reason `why`.
fn refusing(
    words: &'static [&'static str],
    why: &'static str,
    answer: fn(&str, &Value) -> (u16, String),
) -> ModelServer {
    ModelServer::start(move |raw, request| {
        if words.iter().any(|word| raw.contains(word)) {
            let error = serde_json::json!({"type": "invalid_request_error", "message": why});
            (400, serde_json::json!({"type": "error", "error": error}).to_string())
        } else {
            answer(raw, request)
        }
    })
}

fn says(raw: &str, _: &Value) -> (u16, String) {
    dialects::says(raw, "A cat, I guess.")
}

#[tokio::test]
async fn a_model_that_sees_no_images_reads_of_them_after_one_refusal() {
    for provider in PROVIDERS {
        let server = refusing(&["AQID"], "this model does not support image input", says);
        let host = host(&server, provider, "");
        let outcome = host.agent().ask("s", question()).await.unwrap();
        assert_eq!(outcome.text, "A cat, I guess.", "{provider}");
        host.agent().ask("s", "Sure?").await.unwrap();
        host.agent().ask("s", question()).await.unwrap();
        let has_bytes: Vec<_> = server
            .requests()
            .iter()
            .map(|body| body.to_string().contains("AQID"))
            .collect();
        assert_eq!(has_bytes, [true, false, false, false], "{provider}");
        let words = "cat.png";
        assert!(server.requests()[1].to_string().contains(words), "{provider}");
        let told = server.requests()[1].to_string();
        assert!(
            told.contains("3 bytes: the model's server does not take it]"),
            "{provider}: {told}"
        );
    }
}

#[tokio::test]
async fn an_image_that_a_server_cannot_read_does_not_end_the_conversation() {
    for provider in PROVIDERS {
        let server = refusing(&["AQID"], "Could not process image", says);
        let host = host(&server, provider, "");
        host.agent().ask("s", question()).await.unwrap();
        let other = Content::from("And this?").with_image(MediaPart::bytes("image/png", vec![7, 8]));
        host.agent().ask("t", other).await.unwrap();
        let last = server.requests().pop().unwrap().to_string();
        assert!(last.contains("Bwg="), "{provider}: other images are sent: {last}");
    }
}

#[tokio::test]
async fn the_setting_images_reaches_the_wire() {
    for provider in PROVIDERS {
        let server = ModelServer::start(says);
        let host = host(&server, provider, "Images = false");
        host.agent().ask("s", question()).await.unwrap();
        let body = server.requests().remove(0).to_string();
        assert!(!body.contains("AQID"), "{provider}: {body}");
        assert!(
            body.contains("3 bytes: this model does not take images and files]"),
            "{provider}: {body}"
        );
    }
}

/// Answers with a call of the tool that is offered, else in words.
fn weather(raw: &str, request: &Value) -> (u16, String) {
    let tool = &request["tools"][0];
    let name = tool.get("name").unwrap_or(&tool["function"]["name"]).as_str();
    match name {
        Some(name) => dialects::calls(raw, name, OSLO),
        None => dialects::says(raw, OSLO),
    }
}

#[tokio::test]
async fn a_server_without_schemas_is_asked_in_words_and_then_by_a_tool_and_then_in_words() {
    let ask =
        async |host: &AgentHost| -> Weather { host.agent().ask("s", "How cold is Oslo?").output().await.unwrap() };
    for provider in ["openai", "openai-responses"] {
        let refused = &["response_format", r#""format":{"#];
        let server = refusing(refused, "response_format json_schema is not supported", weather);
        let host = host(&server, provider, "");
        assert_eq!((ask(&host).await, ask(&host).await), (oslo(), oslo()), "{provider}");
        let sent = server.requests();
        let has_tools: Vec<_> = sent.iter().map(|body| body.get("tools").is_some()).collect();
        assert_eq!(has_tools, [false, false, true], "{provider}");
        let words = "Answer with JSON that matches this JSON Schema";
        assert!(sent[1].to_string().contains(words), "{provider}: {}", sent[1]);
    }
    let refused = &["response_format", r#""tools":"#];
    let server = refusing(
        refused,
        "response_format is unknown, and tools are not supported",
        weather,
    );
    let host = host(&server, "openai", "StructuredOutput = \"tool\"");
    assert_eq!(ask(&host).await, oslo());
    assert_eq!(server.requests().len(), 2);
}
