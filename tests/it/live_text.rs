//! A real model that calls tools in text, in a whole host, if `ROCKBOT_TEST_LLM_TEXT_URL` names
//! its server (a base URL, such as that of a `llama-server` with a model's own template).
//! Building such a server takes far longer than all other checks together, so
//! `ROCKBOT_TEST_REQUIRE` does not ask for it.
//!
//! `ROCKBOT_TEST_LLM_TEXT_URL=http://127.0.0.1:8080/v1 cargo test --all-features --test it live_text`

use rockbot::chat::OpenAiChat;
use rockbot_core::chat::{ChatCall, ModelSettings};
use rockbot_core::config::Config;
use rockbot_core::tool::{Tool, tool};
use rockbot_core::turn::{Budget, TurnOutcome, TurnProgress};
use rockbot_host::behavior::ModelBehaviors;
use rockbot_host::{AgentHost, TurnPolicies};
use tower::util::MapRequestLayer;

use crate::support::{Notes, collect};

const IN_TEXT: &str = r#"{ "ModelBehaviors": { "Models": { "local": { "UseTextBasedToolCalling": true } } } }"#;

/// Tells the weather of a city.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct GetWeather {
    /// The city.
    city: String,
}

/// Adds two numbers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

fn tools(notes: &Notes) -> [Tool; 2] {
    let cities = notes.clone();
    let sums = notes.clone();
    let weather = tool("get_weather", move |GetWeather { city }: GetWeather| {
        cities.add(format!("weather {city}"));
        async { "18 degrees and sunny" }
    });
    let add = tool("add", move |Add { a, b }: Add| {
        sums.add(format!("add {a} {b}"));
        async move { a + b }
    });
    [weather.pure(), add.pure()]
}

/// A host whose model calls in text, if there is such a model.
fn host(notes: &Notes) -> Option<AgentHost> {
    let Ok(endpoint) = std::env::var("ROCKBOT_TEST_LLM_TEXT_URL") else {
        println!("SKIPPED: ROCKBOT_TEST_LLM_TEXT_URL names no model server");
        return None;
    };
    let config = Config::new().with_text("agent.json", IN_TEXT).unwrap();
    let careful = MapRequestLayer::new(|mut call: ChatCall| {
        let settings = ModelSettings::new().with_temperature(0.0).with_max_output_tokens(128);
        call.request = (*call.request).clone().with_settings(settings).into();
        call
    });
    let builder = AgentHost::in_memory()
        .chat(OpenAiChat::builder(endpoint, "local").build().unwrap())
        .chat_layer(careful)
        .policies(TurnPolicies::new().with_model_behaviors(ModelBehaviors::read(&config).unwrap()))
        .budget(Budget::default().with_max_model_calls(4));
    let host = tools(notes)
        .into_iter()
        .fold(builder, |builder, tool| builder.tool(tool));
    Some(host.build().unwrap())
}

/// Asks, and checks what holds for every model: the tool was called with what `expected` says,
/// the turn ended with an answer, and the answer shows no call.
async fn check(question: &str, expected: &str) {
    let notes = Notes::default();
    let Some(host) = host(&notes) else { return };
    let reports = collect(host.agent().stream("live", question)).await;
    let called = notes.all();
    assert!(
        called.iter().any(|call| call.starts_with(expected)),
        "{called:?}: {reports:#?}"
    );
    let outcome = reports.iter().find_map(final_of).unwrap();
    assert!(outcome.is_answer() && !outcome.text.is_empty(), "{outcome:#?}");
    assert!(outcome.model_calls <= 5, "{outcome:#?}");
    let shown: String = reports.iter().filter_map(delta_of).collect();
    for text in [&shown, &outcome.text] {
        assert!(
            !text.contains("tool_call_name") && !text.contains("\"arguments\""),
            "{text}"
        );
    }
}

fn final_of(report: &TurnProgress) -> Option<&TurnOutcome> {
    match report {
        TurnProgress::Final(outcome) => Some(outcome),
        _ => None,
    }
}

fn delta_of(report: &TurnProgress) -> Option<&str> {
    match report {
        TurnProgress::Delta(text) => Some(text),
        _ => None,
    }
}

#[tokio::test]
async fn a_model_that_answers_in_text_drives_a_tool() {
    check("What is the weather in Paris?", "weather Paris").await;
}

#[tokio::test]
async fn a_model_that_answers_in_text_passes_numbers_on() {
    check("Use your tool to add 1234 and 4321.", "add 1234 4321").await;
}
