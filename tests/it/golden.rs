//! A recorded run is played again, and the form in which a turn stands in the journal.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rockbot_core::CallContext;
use rockbot_core::chat::{ChatErrorKind, ChatRequest};
use rockbot_core::testing::{ManualClock, ScriptedModel, SequentialIds};
use rockbot_core::tool::{
    Effect, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};
use rockbot_core::turn::TurnRequest;
use rockbot_host::turn::{Evaluation, Nudges, TraceEvent, TurnTrace};
use rockbot_host::{AgentHost, Briefing};
use rockbot_llm::{ModelGateway, Retry};
use serde_json::json;

use crate::support::journal::json;
use crate::support::{Notes, host_of, noting_tool, unguarded};

/// Lists the requests to the model and the tool calls, in order.
#[derive(Debug, PartialEq)]
struct Transcript {
    requests: Vec<String>,
    calls: Vec<String>,
}

fn shown(request: &ChatRequest) -> String {
    let tools = String::from_utf8(request.tools.json().to_vec()).unwrap();
    format!("{} {tools}", serde_json::to_string(&request.messages).unwrap())
}

/// A tool that notes its calls and answers what it is told to.
#[derive(Debug, Clone)]
struct Noting(Notes, Arc<Mutex<VecDeque<ToolInvokeResponse>>>);

#[async_trait::async_trait]
impl ToolExecutor for Noting {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        self.0.add(format!(
            "{} {} {}",
            request.tool_call_id, request.tool_name, request.arguments
        ));
        let answer = self.1.lock().unwrap().pop_front();
        match answer {
            Some(answer) if answer.is_error => Err(ToolError::execution_failed(answer.content.into_words())),
            Some(answer) => Ok(request.succeed(answer.content)),
            None => Err(ToolError::execution_failed("no answer is left")),
        }
    }
}

/// Runs the message with this model and these answers of the tools.
async fn play(model: ScriptedModel, answers: impl IntoIterator<Item = ToolInvokeResponse>) -> (Transcript, TurnTrace) {
    let folder = tempfile::tempdir().unwrap();
    let noting = Noting(Notes::default(), Arc::new(Mutex::new(answers.into_iter().collect())));
    let tool = |name: &str, effect| {
        let registration = ToolRegistration::new(name, "Acts.", json!({"type": "object"}));
        Tool::new(registration, noting.clone()).effect(effect)
    };
    let host = AgentHost::builder("golden")
        .chat(model.clone())
        .tool(tool("look", Effect::Pure))
        .tool(tool("send", Effect::Mutating))
        .data_dir(folder.path())
        .policies(unguarded())
        .build()
        .unwrap();
    let outcome = host.agent().run(TurnRequest::new("s", "m1", "go")).await.unwrap();
    let trace = host.trace(&outcome.turn).await.unwrap().unwrap();
    model.assert_complete();
    let requests = model.requests().iter().map(|request| shown(request)).collect();
    let calls = noting.0.all();
    (Transcript { requests, calls }, trace)
}

fn answer(content: &str, is_error: bool) -> ToolInvokeResponse {
    ToolInvokeResponse::new("", "", content).with_error(is_error)
}

#[tokio::test]
async fn a_recorded_run_played_again_asks_and_calls_the_same() {
    let call = |tool: &str, n: i64| (tool.to_owned(), json!({"n": n}));
    let model = ScriptedModel::new()
        .calls_all([call("look", 1), call("send", 2), call("look", 3)])
        .calls_all([call("send", 4), call("missing", 5)])
        .says("done");
    let answers = [
        answer("one", false),
        answer("two", false),
        answer("three", true),
        answer("four", false),
    ];
    let (first, recorded) = play(model, answers).await;
    assert_eq!(
        first.calls,
        [
            r#"call_1 look {"n":1}"#,
            r#"call_2 send {"n":2}"#,
            r#"call_3 look {"n":3}"#,
            r#"call_4 send {"n":4}"#
        ]
    );

    let mut model = ScriptedModel::new();
    let mut answers = Vec::new();
    let mut wanted = Vec::new();
    for entry in recorded.entries() {
        match entry.event.clone() {
            TraceEvent::ModelAnswered { response, .. } => {
                wanted.extend(response.tool_calls.iter().map(|call| call.id.clone()));
                model = model.answers(response);
            }
            TraceEvent::ToolReturned(response) if response.tool_name != "missing" => answers.push(response),
            _ => {}
        }
    }
    assert_eq!(wanted, ["call_1", "call_2", "call_3", "call_4", "call_5"]);
    let (second, replayed) = play(model, answers).await;
    assert_eq!(second, first);
    assert_eq!(bodies(&replayed), bodies(&recorded));
}

/// Returns the records as the journal has them.
fn bodies(trace: &TurnTrace) -> Vec<String> {
    trace.run().records.iter().map(|record| json(&record.body)).collect()
}

/// Checks that the machine decides the same again, and returns the requests with tools, and the
/// calls.
fn decided_anew(trace: &TurnTrace) -> (Vec<String>, Vec<String>) {
    assert!(trace.entries().iter().all(|entry| entry.is_reproducible));
    assert!(trace.outcome().is_some());
    let requests = trace.entries().iter().flat_map(|entry| &entry.requests);
    let asked = requests.filter(|request| !request.is_out_of_band);
    let called = trace.entries().iter().flat_map(|entry| &entry.calls);
    (
        asked
            .map(|request| serde_json::to_string(&request.messages).unwrap())
            .collect(),
        called
            .map(|call| format!("{} {} {}", call.id, call.name, call.arguments))
            .collect(),
    )
}

/// A host with every policy on, whose model is tried again when it fails.
fn eager(model: &ScriptedModel, noting: &Noting, journal: &Path) -> AgentHost {
    let tool = |name: &str, effect| {
        let registration = ToolRegistration::new(name, "Acts.", json!({"type": "object"}));
        Tool::new(registration, noting.clone()).effect(effect)
    };
    AgentHost::builder("golden")
        .chat(ModelGateway::builder(model.clone()).layer(Retry::default()).build())
        .tool(tool("look", Effect::Pure))
        .tool(tool("send", Effect::Mutating))
        .briefing(Briefing::full().with_time_zone("UTC"))
        .clock(ManualClock::default())
        .policies(
            unguarded()
                .with_nudges(Nudges::default().with_on_unfinished_set_up(true))
                .with_evaluation(
                    Evaluation::default()
                        .with_max_completion_reprompts(1)
                        .with_max_follow_up_passes(1),
                ),
        )
        .data_dir(journal)
        .build()
        .unwrap()
}

/// Runs the message; returns what was asked and called, and the record of it.
async fn play_eagerly(
    model: ScriptedModel,
    answers: impl IntoIterator<Item = ToolInvokeResponse>,
) -> (Vec<Arc<ChatRequest>>, Vec<String>, TurnTrace) {
    let folder = tempfile::tempdir().unwrap();
    let noting = Noting(Notes::default(), Arc::new(Mutex::new(answers.into_iter().collect())));
    let host = eager(&model, &noting, folder.path());
    let outcome = host
        .agent()
        .run(TurnRequest::new("s", "m1", "Send the report to Ada."))
        .await
        .unwrap();
    let trace = host.trace(&outcome.turn).await.unwrap().unwrap();
    model.assert_complete();
    (model.requests(), noting.0.all(), trace)
}

#[tokio::test(start_paused = true)]
async fn a_run_with_nudges_retries_and_second_looks_is_decided_the_same_again() {
    let model = ScriptedModel::new()
        .calls_all([
            ("task_create", json!({"items": ["Look", "Send"]})),
            ("look", json!({"n": 1})),
        ])
        .says("Let me send it:")
        .fails(ChatErrorKind::Overloaded)
        .calls_all([
            ("send", json!({"n": 2})),
            ("task_update", json!({"id": 2, "status": "completed"})),
        ])
        .says("The report is on its way to Ada.")
        .says(json!({"complete": false, "reason": "Bob is missing."}).to_string())
        .calls("send", json!({"n": 3}))
        .says("The report is on its way to Ada and Bob.")
        .says(json!({"hasFollowUps": true, "prompt": "Look once more."}).to_string())
        .calls("look", json!({"n": 4}))
        .says("Both have it.");
    let results = ["one", "two", "three", "four"];
    let answers = results.map(|result| answer(result, result == "three"));
    let (requests, calls, recorded) = play_eagerly(model, answers).await;
    assert_eq!(requests.len(), 11);
    let wanted = [
        r#"call_2 look {"n":1}"#,
        r#"call_3 send {"n":2}"#,
        r#"call_5 send {"n":3}"#,
        r#"call_6 look {"n":4}"#,
    ];
    assert_eq!(calls, wanted);

    // The machine alone asks the same, but for the attempt that the gateway made again.
    let (asked, called) = decided_anew(&recorded);
    let mut in_person: Vec<_> = requests.iter().filter(|request| request.output.is_none()).collect();
    in_person.remove(2);
    let shown = |request: &&Arc<ChatRequest>| serde_json::to_string(&request.messages).unwrap();
    assert_eq!(asked, in_person.iter().map(shown).collect::<Vec<_>>());
    let real: Vec<_> = called.into_iter().filter(|call| !call.contains(" task_")).collect();
    assert_eq!(real, wanted);

    // So does another host, from the recorded answers alone.
    let mut model = ScriptedModel::new();
    let mut answers = Vec::new();
    for entry in recorded.entries() {
        match entry.event.clone() {
            TraceEvent::ModelAnswered { response, .. } => model = model.answers(response),
            TraceEvent::ToolReturned(response) if !response.tool_name.as_str().starts_with("task_") => {
                answers.push(response)
            }
            _ => {}
        }
    }
    let (again, called, replayed) = play_eagerly(model, answers).await;
    let mut first: Vec<_> = requests.iter().map(|request| shown(&request)).collect();
    first.remove(2);
    assert_eq!(again.iter().map(|request| shown(&request)).collect::<Vec<_>>(), first);
    assert_eq!(called, calls);
    assert_eq!(bodies(&replayed), bodies(&recorded));
}

// The time of records follows the monotonic clock, which must stand still here.
#[tokio::test(start_paused = true)]
async fn the_lines_of_a_small_turn() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().calls("look", json!({"n": 1})).says("It is there.");
    let (look, _) = noting_tool("look");
    let host = host_of(&model)
        .tool(look.effect(Effect::Mutating))
        .data_dir(folder.path())
        .clock(ManualClock::default())
        .ids(SequentialIds::new())
        .build()
        .unwrap();
    host.agent().ask("s", "Is it there?").await.unwrap();
    let lines = std::fs::read_to_string(folder.path().join("turns/turns-00000001.jsonl")).unwrap();
    insta::assert_snapshot!(lines);
}
