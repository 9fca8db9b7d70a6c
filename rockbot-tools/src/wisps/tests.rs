//! The interpreter, asked with conversations as the turn engine asks it.

use std::sync::{Arc, Mutex, OnceLock};

use proptest::prelude::*;
use rockbot_core::CallContext;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatErrorKind, ChatMessage, ChatRequest, ChatResponse, ModelTier, ToolCall, Usage,
};
use rockbot_core::content::Content;
use rockbot_core::store::{InMemoryWorkingMemory, WorkingMemory};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{Owner, ToolRegistry as _, ToolView};
use rockbot_core::{Principal, SystemClock, ToolName};
use serde_json::{Value, json};

use super::HostParts;
use super::assignment::Assignment;
use super::keep::{KEEP, keep_tool};
use super::log::ExecutionLog;
use super::model::WispModel;
use super::raw;
use super::report::Report;
use super::testing::{known_tools, registry};

const TOOLS: [&str; 4] = ["look", "pay", "save", "list"];

/// The result of a call, by the tool and its arguments.
type Results = dyn Fn(&str, &Value) -> Result<String, String> + Send + Sync;

/// An interpreter with its model, its memory, and a turn that asks it.
struct Wisp {
    model: WispModel,
    memory: Arc<InMemoryWorkingMemory>,
    tools: ToolView,
    results: Box<Results>,
    /// The calls that ran, but for those that keep something.
    ran: Mutex<Vec<String>>,
    messages: Vec<Arc<ChatMessage>>,
    spent: Usage,
}

impl Wisp {
    fn new(
        steps: Value,
        asked: &ScriptedModel,
        results: impl Fn(&str, &Value) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        let mut definition = json!({"description": "Pay the bill."});
        definition["steps"] = steps;
        let definitions = raw::parse(&json!({"definitions": definition}).to_string(), &known_tools(&TOOLS)).unwrap();
        let [definition] = <[_; 1]>::try_from(definitions).unwrap();
        let assignment = Assignment {
            id: "w1".to_owned(),
            definition,
        };
        let registry = registry(&TOOLS);
        registry.register(&Owner::new("wisps"), keep_tool()).unwrap();
        let snapshot = registry.snapshot();
        let memory = Arc::new(InMemoryWorkingMemory::new());
        let parts = HostParts {
            chat: Arc::new(asked.clone()),
            registry: Arc::new(registry),
            memory: Some(memory.clone()),
            feedback: None,
            skills: None,
            clock: Arc::new(SystemClock),
            log: ExecutionLog::default(),
        };
        Self {
            model: WispModel {
                parts: Arc::new(OnceLock::from(parts)),
            },
            memory,
            tools: ToolView::default().extended_by(1, snapshot.entries()),
            results: Box::new(results),
            ran: Mutex::default(),
            messages: vec![
                Arc::new(ChatMessage::system("You are an agent.")),
                Arc::new(ChatMessage::user("It is Friday.")),
                Arc::new(ChatMessage::user(assignment.message())),
            ],
            spent: Usage::default(),
        }
    }

    async fn ask(&self, tools: ToolView) -> ChatResponse {
        let request = ChatRequest::new(self.messages.clone()).with_tools(tools);
        let call = ChatCall::new(request, CallContext::new("wisp-w1"));
        self.model.chat(call).await.unwrap()
    }

    /// Asks once and runs the calls of the answer. Returns the text of an answer without calls.
    async fn step(&mut self) -> Option<String> {
        let answer = self.ask(self.tools.clone()).await;
        self.spent += answer.usage.unwrap();
        if answer.tool_calls.is_empty() {
            return Some(answer.text);
        }
        self.messages.push(Arc::new(answer.to_message()));
        for call in &answer.tool_calls {
            let result = self.result(call);
            let message = ChatMessage::tool(
                call.id.clone(),
                Content::from(result.clone().unwrap_or_else(|error| error)),
            );
            self.messages.push(Arc::new(message.with_error(result.is_err())));
        }
        None
    }

    fn result(&self, call: &ToolCall) -> Result<String, String> {
        if call.name.as_str() == KEEP {
            return Ok("kept".to_owned());
        }
        self.ran
            .lock()
            .unwrap()
            .push(format!("{} {}", call.name, call.arguments));
        (self.results)(call.name.as_str(), &serde_json::from_str(&call.arguments).unwrap())
    }

    async fn run(&mut self) -> Report {
        for _ in 0..200 {
            if let Some(text) = self.step().await {
                return Report::parse(&text).expect(&text);
            }
        }
        panic!("the wisp does not end");
    }

    fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }

    async fn saved(&self) -> Vec<(String, String)> {
        let entries = self.memory.list(&Principal::default(), None).await.unwrap();
        entries
            .iter()
            .map(|entry| (entry.key.to_string(), entry.value.clone()))
            .collect()
    }
}

fn done(_: &str, _: &Value) -> Result<String, String> {
    Ok("done".to_owned())
}

fn direct(id: &str, tool: &str, params: Value) -> Value {
    let mut step = json!({"id": id, "mode": "Direct", "tool": tool});
    step["params"] = params;
    step
}

#[tokio::test]
async fn the_steps_run_in_order_with_the_results_of_those_before() {
    let steps = json!([
        direct("find", "look", json!({"at": 1})),
        {"id": "think", "mode": "Llm", "prompt": "Which bill of {{steps.find.result.who}}?", "input_from": "find"},
        direct("pay", "pay", json!({"bill": "{{steps.think.result}}", "at": "{{steps.find.result.n}}"})),
    ]);
    let asked = ScriptedModel::new().says("  bill 7\n");
    let results = |tool: &str, _: &Value| match tool {
        "look" => Ok(r#"{"who": "Ann", "n": 3}"#.to_owned()),
        _ => Ok("paid".to_owned()),
    };
    let mut wisp = Wisp::new(steps, &asked, results);
    let report = wisp.run().await;
    assert_eq!((report.failure, report.completed, report.steps), (None, 3, 3));
    assert_eq!(report.body, "paid");
    assert_eq!(wisp.ran(), [r#"look {"at":1}"#, r#"pay {"at":3,"bill":"bill 7"}"#]);
    let request = &asked.requests()[0];
    assert_eq!(request.tier, Some(ModelTier::Low));
    let text = request.messages[1].text();
    assert_eq!(
        text,
        "Which bill of Ann?\n\n## Input Data\n{\"who\": \"Ann\", \"n\": 3}"
    );
    let names: Vec<_> = request.tools.names().map(ToolName::as_str).collect();
    assert_eq!(names, ["look", "pay"], "the tools of the wisp's own calls");
    let saved = wisp.saved().await;
    let saved: Vec<_> = saved.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    assert_eq!(
        saved[1..],
        [("wisp/w1/pay/output", "paid"), ("wisp/w1/think/output", "bill 7")]
    );
    assert_eq!((wisp.spent.input, wisp.spent.output), (10, 5));
}

#[tokio::test]
async fn a_wisp_that_is_read_again_goes_on_where_it_was() {
    let steps = json!([
        direct("a", "look", json!({})),
        {"id": "b", "mode": "Llm", "prompt": "p"},
        direct("c", "pay", json!({"x": "{{steps.b.result}}"})),
    ]);
    let asked = ScriptedModel::new().says("seven");
    let mut wisp = Wisp::new(steps, &asked, done);
    assert_eq!(wisp.run().await.body, "done");
    asked.assert_complete();
    let whole = std::mem::take(&mut wisp.messages);
    // After each of the interpreter's answers but the first two the process ends, and another one
    // asks.
    for end in [7, 9] {
        wisp.messages = whole[..end].to_vec();
        let again = wisp.ask(wisp.tools.clone()).await;
        let next = whole
            .get(end)
            .map(|message| message.tool_calls.clone())
            .unwrap_or_default();
        assert_eq!(again.tool_calls, next, "{end}");
    }
    assert_eq!(wisp.ran().len(), 2);
}

#[tokio::test]
async fn a_failed_step_ends_the_wisp_and_names_what_was_done() {
    let steps = json!([
        direct("a", "look", json!({})),
        direct("b", "pay", json!({})),
        direct("c", "save", json!({})),
    ]);
    let results = |tool: &str, _: &Value| match tool {
        "pay" => Err("the bank timed out".to_owned()),
        _ => Ok("done".to_owned()),
    };
    let mut wisp = Wisp::new(steps, &ScriptedModel::new(), results);
    let text = wisp.run().await.to_text();
    assert_eq!(
        text,
        "Failed, External: 1 of 3 steps.\nStep `b` failed (External): the bank timed out\nSteps completed before: `a`"
    );
    assert_eq!(wisp.ran().len(), 2);
}

#[tokio::test]
async fn a_failure_with_skip_to_goes_on_and_is_told_first() {
    let mut pay = direct("b", "pay", json!({}));
    pay["on_failure"] = json!({"action": "skip_to", "skip_to": "d"});
    let steps = json!([
        direct("a", "look", json!({})),
        pay,
        direct("c", "save", json!({"x": "{{steps.b.result}}"})),
        direct("d", "list", json!({"x": "{{steps.a.result}}"})),
    ]);
    let results = |tool: &str, _: &Value| match tool {
        "pay" => Ok(r#"{"error": "no money"}"#.to_owned()),
        tool => Ok(format!("{tool} done")),
    };
    let mut wisp = Wisp::new(steps, &ScriptedModel::new(), results);
    let text = wisp.run().await.to_text();
    assert_eq!(
        text,
        "Succeeded: 2 of 4 steps.\nStep `b` failed (External): no money\nIt went on with step `d`.\nlist done"
    );
    assert_eq!(wisp.ran()[2], r#"list {"x":"look done"}"#);
}

#[tokio::test]
async fn a_template_without_a_value_fails_its_step() {
    let steps = json!([
        direct("a", "look", json!({})),
        direct("b", "pay", json!({"x": "{{steps.a.result.id}}"}))
    ]);
    let mut wisp = Wisp::new(steps, &ScriptedModel::new(), done);
    let text = wisp.run().await.to_text();
    assert!(
        text.starts_with("Failed, Data: 1 of 2 steps.\nStep `b` failed (Data): `{{steps.a.result.id}}` has no value"),
        "{text}"
    );
    assert_eq!(wisp.ran().len(), 1);
}

#[tokio::test]
async fn arguments_are_checked_and_repaired_once_before_anything_runs() {
    let steps = json!([
        direct("a", "save", json!({"at": "2"})),
        direct("b", "look", json!({"at": "two"}))
    ]);
    let asked = ScriptedModel::new()
        .says("```json\n{\"at\": 2}\n```")
        .says(r#"{"at": 22}"#);
    let mut wisp = Wisp::new(steps.clone(), &asked, done);
    assert_eq!(wisp.run().await.completed, 2);
    assert_eq!(wisp.ran(), [r#"save {"at":2}"#, r#"look {"at":22}"#]);
    let question = asked.requests()[1].messages[1].text().into_owned();
    assert!(
        question.starts_with("Tool: look\nArguments: {\"at\":\"two\"}\nProblem:\n- `at` must be"),
        "{question}"
    );

    for answer in ["NO_CORRECTION", r#"{"at": "3"}"#, "{", "I cannot"] {
        let asked = ScriptedModel::new().says(r#"{"at": 2}"#).says(answer);
        let mut wisp = Wisp::new(steps.clone(), &asked, done);
        let text = wisp.run().await.to_text();
        let expected =
            "Failed, Structural: 0 of 2 steps.\nStep `b`: the arguments do not match `look`, so nothing has run";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(wisp.ran(), [""; 0]);
    }
}

#[tokio::test]
async fn arguments_that_are_known_late_are_repaired_once_too() {
    let steps = json!([
        direct("a", "look", json!({})),
        direct("b", "pay", json!({"at": "{{steps.a.result}}"}))
    ]);
    let refusing = |tool: &str, arguments: &Value| match (tool, &arguments["at"]) {
        ("pay", Value::String(_)) => Err("invalid arguments for `pay`:\n- `at` must be an integer".to_owned()),
        _ => Ok("7".to_owned()),
    };
    let asked = ScriptedModel::new().says(r#"{"at": 7}"#);
    let mut wisp = Wisp::new(steps.clone(), &asked, refusing);
    assert_eq!(wisp.run().await.completed, 2);
    assert_eq!(wisp.ran()[1..], [r#"pay {"at":"7"}"#, r#"pay {"at":7}"#]);

    let asked = ScriptedModel::new().says("NO_CORRECTION");
    let mut wisp = Wisp::new(steps, &asked, refusing);
    let text = wisp.run().await.to_text();
    assert!(
        text.starts_with("Failed, Structural: 1 of 2 steps.\nStep `b` failed (Structural): invalid arguments"),
        "{text}"
    );
}

#[tokio::test]
async fn the_model_of_a_step_calls_tools_of_the_wisp() {
    let steps = json!([direct("a", "look", json!({})), {"id": "b", "mode": "Llm", "prompt": "Pay."}]);
    let asked = ScriptedModel::new()
        .calls("pay", json!({"at": 1}))
        .calls("pay", json!({"at": 2}))
        .says("Paid both.");
    let mut wisp = Wisp::new(steps.clone(), &asked, done);
    assert_eq!(wisp.run().await.body, "Paid both.");
    assert_eq!(wisp.ran()[1..], [r#"pay {"at":1}"#, r#"pay {"at":2}"#]);
    let last = asked.requests()[2].clone();
    assert_eq!(
        last.messages.len(),
        6,
        "the directive, the task, and two calls with their results"
    );
    assert!(
        last.messages[1]
            .text()
            .ends_with("## Prior Step Results\n### Step: a\ndone")
    );

    let failing = |tool: &str, _: &Value| {
        if tool == "pay" {
            Err("no".to_owned())
        } else {
            Ok("done".to_owned())
        }
    };
    let asked = ScriptedModel::new().calls("pay", json!({})).says("Paid.");
    let text = Wisp::new(steps, &asked, failing).run().await.to_text();
    assert!(
        text.contains("Step `b` failed (Judgment): no call that was to change something succeeded"),
        "{text}"
    );
}

#[tokio::test]
async fn a_model_that_only_calls_tools_has_to_answer_in_the_end() {
    let steps = json!([direct("a", "look", json!({})), {"id": "b", "mode": "Llm", "prompt": "Look."}]);
    let asked = (0..11).fold(ScriptedModel::new(), |asked, at| asked.calls("look", json!({"at": at})));
    let asked = asked.says("enough");
    let mut wisp = Wisp::new(steps, &asked, done);
    assert_eq!(wisp.run().await.body, "enough");
    let requests = asked.requests();
    assert!(!requests[10].tools.is_empty() && requests[11].tools.is_empty());
}

#[tokio::test]
async fn a_model_that_fails_fails_its_step() {
    let steps = json!([{"id": "b", "mode": "Llm", "prompt": "p", "on_failure": {"skip_to": "c"}}, direct("c", "save", json!({}))]);
    let asked = ScriptedModel::new().fails(ChatErrorKind::Overloaded);
    let text = Wisp::new(steps, &asked, done).run().await.to_text();
    assert!(
        text.starts_with("Succeeded: 1 of 2 steps.\nStep `b` failed (Judgment): the model could not be asked"),
        "{text}"
    );
}

#[tokio::test]
async fn a_wisp_without_budget_says_how_far_it_came() {
    let steps = json!([direct("a", "look", json!({})), direct("b", "pay", json!({}))]);
    let mut wisp = Wisp::new(steps, &ScriptedModel::new(), done);
    assert_eq!(wisp.step().await, None);
    let stopped = wisp.ask(ToolView::default()).await;
    assert_eq!(
        stopped.text,
        "Failed, External: 1 of 2 steps.\nIt was stopped: its time or its number of calls was used up.\nSteps completed before: `a`"
    );
}

#[tokio::test]
async fn a_conversation_without_a_definition_is_an_error() {
    let mut wisp = Wisp::new(json!([direct("a", "look", json!({}))]), &ScriptedModel::new(), done);
    wisp.messages.truncate(2);
    let call = ChatCall::new(ChatRequest::new(wisp.messages.clone()), CallContext::new("1"));
    assert_eq!(
        wisp.model.chat(call).await.unwrap_err().kind(),
        ChatErrorKind::InvalidRequest
    );
}

/// Steps of the pattern (result of the tool, earlier step that the arguments refer to, steps to
/// skip after a failure).
fn steps_of(pattern: &[(u8, Option<usize>, Option<usize>)]) -> Value {
    let step = |(at, (_, from, skip)): (usize, &(u8, Option<usize>, Option<usize>))| {
        let mut step = direct(&format!("s{at}"), TOOLS[at % 4], json!({}));
        if let Some(from) = from.filter(|_| at > 0) {
            step["params"]["x"] = json!(format!("{{{{steps.s{}.result}}}}", from % at));
        }
        if let Some(target) = skip.map(|skip| at + 1 + skip).filter(|target| *target < pattern.len()) {
            step["on_failure"] = json!({"skip_to": format!("s{target}")});
        }
        step
    };
    pattern.iter().enumerate().map(step).collect()
}

proptest! {
    #[test]
    fn every_wisp_ends_and_each_of_its_conversations_is_always_read_alike(
        pattern in prop::collection::vec((0_u8..5, prop::option::of(0_usize..9), prop::option::of(0_usize..3)), 1..9),
    ) {
        let results: Vec<_> = pattern.iter().map(|(result, ..)| *result).collect();
        let ran = std::sync::atomic::AtomicUsize::new(0);
        let result = move |tool: &str, _: &Value| {
            let at = ran.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            match results[at % results.len()] {
                0 => Err("it timed out".to_owned()),
                1 => Ok(r#"{"error": "no"}"#.to_owned()),
                2 => Err(format!("invalid arguments for `{tool}`: …")),
                _ => Ok("done".to_owned()),
            }
        };
        let asked = (0..100).fold(ScriptedModel::new(), |asked, _| asked.says("NO_CORRECTION"));
        let mut wisp = Wisp::new(steps_of(&pattern), &asked, result);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let report = runtime.block_on(wisp.run());
        prop_assert!(wisp.ran().len() <= pattern.len());
        prop_assert!(report.completed <= wisp.ran().len());
        let whole = std::mem::take(&mut wisp.messages);
        for end in (3..=whole.len()).step_by(2) {
            wisp.messages = whole[..end].to_vec();
            let again = runtime.block_on(wisp.ask(wisp.tools.clone()));
            match whole.get(end) {
                Some(next) => prop_assert_eq!(&again.tool_calls, &next.tool_calls),
                None => prop_assert_eq!(again.text, report.to_text()),
            }
        }
    }
}
