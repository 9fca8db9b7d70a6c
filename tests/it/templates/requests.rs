//! Requests of all shapes, as a host sends them to an OpenAI-compatible server.

use std::sync::Arc;

use rockbot::chat::{ModelBehaviors, ModelSettings, OpenAiChat, OutputMode};
use rockbot::config::Config;
use rockbot::content::{Content, MediaPart};
use rockbot::tool::{Tool, tool};
use rockbot::turn::{Briefing, BusyPolicy, HistoryOptions, TurnPolicies};
use rockbot_host::{AgentHost, AgentHostBuilder};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::model_server::ModelServer;
use crate::support::settle;

/// A request as a server gets it, with what the model must read.
pub(super) struct Sent {
    pub(super) shape: &'static str,
    pub(super) body: Value,
    /// Texts that stand in the prompt, wherever the template puts them.
    pub(super) anywhere: Vec<&'static str>,
    /// Texts that stand in the prompt in this order.
    pub(super) in_order: Vec<&'static str>,
    /// Number of images.
    pub(super) images: usize,
}

const INSTRUCTIONS: &str = "Answer as a gardener would.";
const QUESTION: &str = "Which weather has Oslo?";
const RESULT: &str = "Minus three degrees and snow.";
const ANSWER: &str = "It snows, so cover the roses.";
const NEXT_QUESTION: &str = "And the tulips?";
const JOINED: &str = "Tell me of the wind, too.";
const NUDGE: &str = "Your last answer was empty.";
const SHOWN: &str = "A plot of the last week.";

/// Words that a model must know of the tool.
const TOOL: [&str; 6] = [
    "get_weather",
    "Looks up the weather of a city.",
    "city",
    "Name of the city, in English.",
    "days",
    "Number of days to look ahead.",
];

/// The words of a call and its result, in order.
const CALLED: [&str; 3] = ["get_weather", "Oslo-Blindern", RESULT];

/// Looks up the weather of a city.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct GetWeather {
    /// Name of the city, in English.
    #[expect(dead_code, reason = "only its schema is used")]
    city: String,
    /// Number of days to look ahead.
    #[expect(dead_code, reason = "only its schema is used")]
    days: Option<u32>,
    /// Unit of the temperatures.
    #[expect(dead_code, reason = "only its schema is used")]
    unit: Option<Unit>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
enum Unit {
    Celsius,
    Fahrenheit,
}

/// Draws the weather of the last week.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Plot {}

/// A forecast for gardeners.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Forecast {
    /// Depth of the snow, in centimetres.
    #[expect(dead_code, reason = "only its schema is used")]
    snow_depth: f64,
}

const FORECAST: [&str; 2] = ["snow_depth", "Depth of the snow, in centimetres."];
const FORECAST_JSON: &str = r#"{"snow_depth": 12.0}"#;

/// Starts a server that gives these answers, one a request.
fn server(answers: impl IntoIterator<Item = Value>) -> ModelServer {
    let mut answers: Vec<_> = answers.into_iter().collect();
    answers.reverse();
    ModelServer::start(move |_, _| {
        let message = answers.pop().expect("an answer for each request");
        let reason = if message["tool_calls"].is_null() {
            "stop"
        } else {
            "tool_calls"
        };
        let answer = json!({"choices": [{"finish_reason": reason, "message": message}]});
        (200, answer.to_string())
    })
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// An answer that calls a tool. The id is one of those that the servers of all families make.
fn calls(id: &str, name: &str) -> Value {
    let arguments = if name == "get_weather" {
        r#"{"city":"Oslo-Blindern"}"#
    } else {
        "{}"
    };
    let call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

fn host(server: &ModelServer) -> AgentHostBuilder {
    host_with(server, tool("get_weather", |_: GetWeather| async { RESULT }).pure())
}

fn host_with(server: &ModelServer, tool: Tool) -> AgentHostBuilder {
    let model = OpenAiChat::builder(&server.endpoint, "m").build().expect("a client");
    let host = AgentHost::in_memory().instructions(INSTRUCTIONS);
    host.chat(model).tool(tool)
}

/// Returns the tool in a form that tells when it was called, and ends when it may.
fn waiting_tool() -> (Tool, Arc<Notify>, Arc<Notify>) {
    let called = Arc::new(Notify::new());
    let may_end = Arc::new(Notify::new());
    let tell = called.clone();
    let wait = may_end.clone();
    let tool = tool("get_weather", move |_: GetWeather| {
        let tell = tell.clone();
        let wait = wait.clone();
        async move {
            tell.notify_one();
            wait.notified().await;
            RESULT
        }
    });
    (tool.pure(), called, may_end)
}

async fn ask(host: &AgentHost, text: impl Into<Content>) {
    host.agent().ask("s", text).await.expect("an answer");
}

/// Returns the requests that the server got, each with what is expected of it.
fn sent<const N: usize>(shape: &'static str, server: &ModelServer, expected: [Expected; N]) -> Vec<Sent> {
    let bodies = server.requests();
    assert_eq!(bodies.len(), N, "{shape}");
    let both = bodies.into_iter().zip(expected);
    both.map(|(body, expected)| Sent {
        shape,
        body,
        anywhere: [&[INSTRUCTIONS], expected.anywhere].concat(),
        in_order: expected.in_order.concat(),
        images: expected.images,
    })
    .collect()
}

struct Expected {
    anywhere: &'static [&'static str],
    in_order: Vec<&'static [&'static str]>,
    images: usize,
}

fn expect(anywhere: &'static [&'static str], in_order: &[&'static [&'static str]]) -> Expected {
    Expected {
        anywhere,
        in_order: in_order.to_vec(),
        images: 0,
    }
}

/// Returns the requests of all shapes.
pub(super) async fn all_shapes() -> Vec<Sent> {
    let shapes = [
        plain().await,
        tools().await,
        history().await,
        parallel(None).await,
        parallel(Some(false)).await,
        joined().await,
        text_mode().await,
        text_fallback().await,
        resumed().await,
        shaped(OutputMode::Native).await,
        shaped(OutputMode::Tool).await,
        shaped(OutputMode::Prompt).await,
        images().await,
    ];
    shapes.into_iter().flatten().collect()
}

/// Two turns without tools, and what the host tells beside the message.
async fn plain() -> Vec<Sent> {
    let server = server([says(ANSWER), says(ANSWER)]);
    let model = OpenAiChat::builder(&server.endpoint, "m").build().expect("a client");
    let host = AgentHost::in_memory()
        .instructions(INSTRUCTIONS)
        .chat(model)
        .briefing(Briefing::full().with_time_zone("UTC"));
    let host = host.build().expect("a host");
    ask(&host, QUESTION).await;
    ask(&host, NEXT_QUESTION).await;
    const TIME: &[&str] = &["It is "];
    let first = expect(TIME, &[&[QUESTION]]);
    let second = expect(TIME, &[&[QUESTION, ANSWER, NEXT_QUESTION]]);
    sent("plain", &server, [first, second])
}

/// A call, its result, and what the host says behind it.
async fn tools() -> Vec<Sent> {
    let server = server([calls("abcdefgh1", "get_weather"), says(""), says(ANSWER)]);
    let host = host(&server).briefing(Briefing::full().with_time_zone("UTC"));
    ask(&host.build().expect("a host"), QUESTION).await;
    const METHOD: &str = "Answer at once when no tool is needed.";
    const ANYWHERE: &[&str] = &[
        TOOL[0],
        TOOL[1],
        TOOL[2],
        TOOL[3],
        TOOL[4],
        TOOL[5],
        METHOD,
        "task_create",
        "task_update",
    ];
    let first = expect(ANYWHERE, &[&[QUESTION]]);
    let second = expect(ANYWHERE, &[&[QUESTION], &CALLED]);
    let third = expect(ANYWHERE, &[&[QUESTION], &CALLED, &[NUDGE]]);
    sent("tools", &server, [first, second, third])
}

/// The calls of an earlier turn.
async fn history() -> Vec<Sent> {
    let server = server([calls("abcdefgh1", "get_weather"), says(ANSWER), says(ANSWER)]);
    let host = host(&server).history(HistoryOptions::new().with_shown_calls(true));
    let host = host.build().expect("a host");
    ask(&host, QUESTION).await;
    ask(&host, NEXT_QUESTION).await;
    let first = expect(&TOOL, &[&[QUESTION]]);
    let second = expect(&TOOL, &[&[QUESTION], &CALLED]);
    let third = expect(&TOOL, &[&[QUESTION], &CALLED, &[ANSWER, NEXT_QUESTION]]);
    sent("history", &server, [first, second, third])
}

/// Two calls in one answer, for a model that may make them, or to which they are shown one at a
/// time.
async fn parallel(setting: Option<bool>) -> Vec<Sent> {
    let mut both = calls("abcdefgh1", "get_weather");
    let more = calls("abcdefgh2", "plot")["tool_calls"][0].take();
    both["tool_calls"].as_array_mut().expect("calls").push(more);
    let server = server([both, says(ANSWER)]);
    let plot = tool("plot", |_: Plot| async { SHOWN }).pure();
    let host = host(&server).tool(plot).build().expect("a host");
    let mut settings = ModelSettings::new();
    settings.parallel_tool_calls = setting;
    host.agent()
        .ask("s", QUESTION)
        .model_settings(settings)
        .await
        .expect("an answer");
    let first = expect(&TOOL, &[&[QUESTION]]);
    let shape = match setting {
        // Results follow the calls, in either order of names.
        None => (
            "parallel calls",
            expect(&["plot"], &[&[QUESTION, "get_weather", "Oslo-Blindern", RESULT, SHOWN]]),
        ),
        Some(_) => (
            "one call at a time",
            expect(&TOOL, &[&[QUESTION], &CALLED, &["plot", SHOWN]]),
        ),
    };
    let (shape, second) = shape;
    sent(shape, &server, [first, second])
}

/// A message of the user that comes while a tool runs.
async fn joined() -> Vec<Sent> {
    let server = server([calls("abcdefgh1", "get_weather"), says(ANSWER)]);
    let (tool, called, may_end) = waiting_tool();
    let host = host_with(&server, tool).build().expect("a host");
    let first = host.agent().ask("s", QUESTION);
    let first = tokio::spawn(first.into_future());
    called.notified().await;
    let second = host.agent().ask("s", JOINED).busy(BusyPolicy::Steer);
    let second = tokio::spawn(second.into_future());
    settle().await;
    may_end.notify_one();
    for turn in [first, second] {
        turn.await.expect("no panic").expect("an answer");
    }
    let first = expect(&TOOL, &[&[QUESTION]]);
    let second = expect(&TOOL, &[&[QUESTION], &CALLED, &[JOINED]]);
    sent("joined", &server, [first, second])
}

/// Calls in text, for a model without native ones.
async fn text_mode() -> Vec<Sent> {
    const CALL: &str = "tool_call_name: get_weather\ntool_call_arguments: {\"city\": \"Oslo-Blindern\"}";
    let server = server([says(CALL), says(ANSWER)]);
    let config = r#"{ "ModelBehaviors": { "Models": { "m": { "UseTextBasedToolCalling": true } } } }"#;
    let config = Config::new().with_text("agent.json", config).expect("a configuration");
    let behaviors = ModelBehaviors::read(&config).expect("behaviors");
    let host = host(&server).policies(TurnPolicies::new().with_model_behaviors(behaviors));
    ask(&host.build().expect("a host"), QUESTION).await;
    let first = expect(&TOOL, &[&[QUESTION]]);
    let second = expect(&TOOL, &[&[QUESTION], &CALLED]);
    sent("text mode", &server, [first, second])
}

/// Calls in the text of a model that is offered native ones, in two rounds: it is asked again at once.
async fn text_fallback() -> Vec<Sent> {
    const CALL: &str = r#"{"name": "get_weather", "arguments": {"city": "Oslo-Blindern"}}"#;
    let server = server([says(CALL), says(CALL), says(CALL), says(ANSWER)]);
    ask(&host(&server).build().expect("a host"), QUESTION).await;
    let first = || expect(&TOOL, &[&[QUESTION]]);
    let third = expect(&TOOL, &[&[QUESTION], &CALLED]);
    let fourth = expect(&TOOL, &[&[QUESTION], &CALLED, &CALLED]);
    sent("call in text", &server, [first(), first(), third, fourth])
}

/// A turn that another process goes on with.
async fn resumed() -> Vec<Sent> {
    let server = server([calls("abcdefgh1", "get_weather"), says(ANSWER)]);
    let folder = tempfile::tempdir().expect("a folder");
    let (tool, called, _) = waiting_tool();
    let stopped = host_with(&server, tool)
        .data_dir(folder.path())
        .build()
        .expect("a host");
    let asked = tokio::spawn(stopped.agent().ask("s", QUESTION).into_future());
    called.notified().await;
    drop(stopped);
    asked.await.expect("no panic").expect_err("the host is gone");
    let host = host(&server).data_dir(folder.path()).build().expect("a host");
    for turn in host.start().await.expect("a start").running {
        host.agent().outcome(&turn).await.expect("an answer");
    }
    let first = expect(&TOOL, &[&[QUESTION]]);
    let second = expect(&TOOL, &[&[QUESTION], &CALLED]);
    sent("resumed", &server, [first, second])
}

/// An answer in a schema, by `mode`.
async fn shaped(mode: OutputMode) -> Vec<Sent> {
    let answer = match mode {
        OutputMode::Tool => {
            let call = json!({"name": "final_answer", "arguments": FORECAST_JSON});
            json!({"content": null, "tool_calls": [{"id": "abcdefgh2", "type": "function", "function": call}]})
        }
        _ => says(FORECAST_JSON),
    };
    let server = server([calls("abcdefgh1", "get_weather"), answer]);
    let host = host(&server).build().expect("a host");
    let forecast = host.agent().ask("s", QUESTION).output::<Forecast>().output_mode(mode);
    forecast.await.expect("a forecast");
    const ANYWHERE: &[&str] = &[
        TOOL[0],
        TOOL[1],
        TOOL[2],
        TOOL[3],
        TOOL[4],
        TOOL[5],
        FORECAST[0],
        FORECAST[1],
    ];
    let first = expect(ANYWHERE, &[&[QUESTION]]);
    let second = expect(ANYWHERE, &[&[QUESTION], &CALLED]);
    let shape = match mode {
        OutputMode::Tool => "shaped by a tool",
        OutputMode::Prompt => "shaped by words",
        _ => "shaped by the server",
    };
    sent(shape, &server, [first, second])
}

/// An image of the user, and one of a tool.
async fn images() -> Vec<Sent> {
    let server = server([calls("abcdefgh1", "plot"), says(ANSWER)]);
    let plot = tool("plot", |_: Plot| async {
        Content::from(SHOWN).with_image(MediaPart::bytes("image/png", vec![4, 5, 6]))
    });
    let host = host_with(&server, plot.pure()).build().expect("a host");
    let image = MediaPart::bytes("image/png", vec![1, 2, 3]);
    ask(&host, Content::from(QUESTION).with_image(image)).await;
    let mut first = expect(&["plot"], &[&[QUESTION]]);
    let mut second = expect(&["plot"], &[&[QUESTION, "plot", SHOWN]]);
    (first.images, second.images) = (1, 2);
    sent("images", &server, [first, second])
}
