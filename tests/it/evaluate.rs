//! The evaluation harness without a model: its tasks are sound, each check takes a right run and
//! refuses wrong ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot::testing::ScriptedModel;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatRequest, ChatResponse, ModelInfo, ModelTier, Role, ToolCall,
};
use serde_json::{Value, json};

use crate::evaluate_example::arguments::Arguments;
use crate::evaluate_example::documents::document;
use crate::evaluate_example::meter::{Bill, Sampling, Spent};
use crate::evaluate_example::policies::{self, Configuration, POLICIES};
use crate::evaluate_example::report::{self, Row};
use crate::evaluate_example::task::{Expected, Fault, Kind, Seen, SeenCall, Task};
use crate::evaluate_example::trial::{self, Limits, Trial};
use crate::evaluate_example::{conversations, facts, tasks};
use crate::support::transcript;

const SAMPLING: Sampling = Sampling {
    temperature: Some(0.0),
    max_output_tokens: 100,
};

const LIMITS: Limits = Limits {
    model_calls: 8,
    time: Duration::from_secs(60),
};

fn with(policy: &'static str) -> Configuration {
    Configuration::new(policy, &[policies::find(policy).unwrap()], false)
}

fn base() -> Configuration {
    Configuration::new("base", &[], false)
}

async fn run(task: &Task, configuration: &Configuration, model: &ScriptedModel) -> Trial {
    let model = Arc::new(model.clone());
    run_with(task, configuration, model).await
}

/// Runs the request as a conversation of its own.
async fn run_with(task: &Task, configuration: &Configuration, model: Arc<dyn ChatClient>) -> Trial {
    let turn = std::slice::from_ref(task);
    let trials = trial::run(turn, configuration, model, SAMPLING, LIMITS).await;
    trials.unwrap().remove(0)
}

fn task(id: &str) -> Task {
    tasks::all().into_iter().find(|task| task.id == id).unwrap()
}

/// Arguments with which a call is the expected one.
fn arguments(expected: &Expected) -> Value {
    let mut arguments = expected.arguments.clone();
    for value in arguments.as_object_mut().unwrap().values_mut() {
        if let Some(word) = value["has"].as_str() {
            *value = word.into();
        }
    }
    arguments
}

/// Returns the calls of a good model, one after the other; a call that fails once is repeated.
fn right_calls(task: &Task) -> Vec<(&'static str, Value)> {
    let call = |expected: &Expected| (expected.tool, arguments(expected));
    let calls = task.calls.iter().flat_map(|expected| {
        let fails_once = task.fault == Some(Fault::Once(expected.tool));
        std::iter::repeat_n(call(expected), if fails_once { 2 } else { 1 })
    });
    calls.collect()
}

/// Returns the last answer of a good model.
fn right_words(task: &Task) -> String {
    let facts: Vec<_> = task.facts.iter().map(|alternatives| alternatives[0]).collect();
    format!("{} {}", admission(task.must_admit), facts.join(", "))
}

fn admission(admits: bool) -> &'static str {
    if admits {
        "That could not be done."
    } else {
        "Here you are."
    }
}

fn script(calls: &[(&'static str, Value)], words: &str) -> ScriptedModel {
    let calling =
        |model: ScriptedModel, (tool, arguments): &(&'static str, Value)| model.calls(*tool, arguments.clone());
    calls.iter().fold(ScriptedModel::new(), calling).says(words)
}

#[test]
fn there_are_enough_tasks_of_each_kind() {
    let tasks = tasks::all();
    assert!(tasks.len() >= 60, "{} tasks", tasks.len());
    for kind in Kind::ALL {
        let of_kind = tasks.iter().filter(|task| task.kind == kind).count();
        let least = if kind == Kind::Parallel { 6 } else { 10 };
        assert!(of_kind >= least, "{of_kind} tasks of {}", kind.name());
    }
    let ids: BTreeSet<_> = tasks.iter().map(|task| &*task.id).collect();
    assert_eq!(ids.len(), tasks.len());
    let turns = conversations(&tasks).map(<[Task]>::len).filter(|turns| *turns > 1);
    let turns: Vec<_> = turns.collect();
    assert_eq!(turns.len(), 30);
    assert!(turns.iter().all(|turns| (4..=8).contains(turns)), "{turns:?}");
}

#[tokio::test]
async fn a_right_run_solves_each_task() {
    for task in tasks::all() {
        let model = script(&right_calls(&task), &right_words(&task));
        let trial = run(&task, &base(), &model).await;
        assert_eq!(trial.verdict, Ok(()), "{}", task.id);
        model.assert_complete();
    }
}

/// A model that does everything right, and is pleased with itself as its own judge. In text it
/// writes its calls.
struct Content {
    script: ScriptedModel,
    in_text: bool,
}

#[async_trait]
impl ChatClient for Content {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        if call.request.output.is_some() {
            let verdict = json!({ "complete": true, "reason": "", "hasFollowUps": false, "prompt": "" });
            return Ok(ChatResponse::text(verdict.to_string()));
        }
        let answer = self.script.chat(call).await?;
        Ok(if self.in_text && !answer.tool_calls.is_empty() {
            ChatResponse::text(written(&answer.tool_calls))
        } else {
            answer
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn written(calls: &[ToolCall]) -> String {
    let lines = |call: &ToolCall| format!("tool_call_name: {}\ntool_call_arguments: {}", call.name, call.arguments);
    calls.iter().map(lines).collect::<Vec<_>>().join("\n")
}

/// No policy sends a good answer back, or keeps it from its user.
#[tokio::test]
async fn no_policy_stands_in_the_way_of_a_right_run() {
    for policy in POLICIES {
        for task in tasks::all() {
            let script = script(&right_calls(&task), &right_words(&task));
            let model = Arc::new(Content {
                script: script.clone(),
                in_text: policy.name == policies::TEXT_CALLS,
            });
            let trial = run_with(&task, &with(policy.name), model).await;
            assert_eq!(trial.verdict, Ok(()), "{} {}", policy.name, task.id);
            script.assert_complete();
        }
    }
}

/// Runs of which none solves `task`.
fn wrong_runs(task: &Task) -> Vec<(&'static str, ScriptedModel)> {
    let calls = right_calls(task);
    let words = right_words(task);
    let and = |tool: &'static str, arguments: Value| script(&[calls.clone(), vec![(tool, arguments)]].concat(), &words);
    let party = json!({ "title": "Party", "date": "2026-03-10", "time": "20:00" });
    let mut wrong = vec![
        ("says nothing", script(&calls, "")),
        match task.kind {
            Kind::Everyday => ("meddles", and("take_note", json!({ "text": "Party" }))),
            _ => ("meddles", and("create_event", party)),
        },
    ];
    if !calls.is_empty() {
        wrong.push(("calls nothing", script(&[], &words)));
        wrong.push(("leaves out a call", script(&calls[..calls.len() - 1], &words)));
    }
    if !task.facts.is_empty() {
        wrong.push(("states no fact", script(&calls, admission(task.must_admit))));
    }
    if task.must_admit {
        let claim = words.replace(admission(true), admission(false));
        wrong.push(("claims to be done", script(&calls, &claim)));
    }
    let is_about_weather = task.calls.iter().any(|call| call.tool == "get_weather");
    if matches!(task.kind, Kind::RightTool | Kind::NoTool) {
        let other = if is_about_weather {
            and("get_price", json!({ "product": "sofa" }))
        } else {
            and("get_weather", json!({ "city": "Rome" }))
        };
        wrong.push(("calls another tool", other));
    }
    wrong
}

#[tokio::test]
async fn a_wrong_run_solves_no_task() {
    for task in tasks::all() {
        for (what, model) in wrong_runs(&task) {
            let trial = run(&task, &base(), &model).await;
            assert!(trial.verdict.is_err(), "{}: solved by a model that {what}", task.id);
        }
    }
}

/// One wrong argument among right ones is enough.
#[tokio::test]
async fn each_argument_counts() {
    for task in tasks::all() {
        for (at, expected) in task.calls.iter().enumerate() {
            for (name, value) in expected.arguments.as_object().unwrap() {
                let mut astray = task.clone();
                astray.calls[at].arguments[name] = if value.is_number() { json!(1) } else { json!("wrong") };
                let model = script(&right_calls(&astray), &right_words(&task));
                let trial = run(&task, &base(), &model).await;
                assert!(trial.verdict.is_err(), "{}: {name} does not count", task.id);
            }
        }
    }
}

/// The tools return what the answers must state, so that no task asks for what cannot be known.
#[tokio::test]
async fn every_fact_of_a_call_stands_in_a_result() {
    // A sum that the model has to make itself.
    let made_up = ["several-total"];
    for task in tasks::all().iter().filter(|task| task.kind != Kind::LongResults) {
        if task.calls.is_empty() || made_up.contains(&&*task.id) {
            continue;
        }
        let model = script(&right_calls(task), "");
        run(task, &base(), &model).await;
        let heard = transcript(model.requests().last().unwrap());
        let is_heard = |line: &&String| line.starts_with("user: ") || line.starts_with("tool: ");
        let heard = heard.iter().filter(is_heard).cloned().collect::<Vec<_>>().join("\n");
        for fact in &task.facts {
            assert!(
                fact.iter().any(|fact| facts::states(&heard, fact)),
                "{}: {fact:?}",
                task.id
            );
        }
    }
}

#[test]
fn a_fact_stands_once_in_its_document() {
    for task in tasks::all().iter().filter(|task| task.kind == Kind::LongResults) {
        let name = arguments(&task.calls[0])["name"].as_str().unwrap().to_owned();
        let text = document(&name).unwrap();
        let fact = task.facts[0][0];
        let lines = text.lines().filter(|line| facts::states(line, fact));
        assert_eq!(lines.count(), 1, "{}", task.id);
        assert!(!facts::states(task.asks, fact), "{} tells its own answer", task.id);
    }
}

/// Returns the results of a search in a long document with the words of the question.
async fn searched(task: &Task) -> String {
    let search = ("search_tool_output", json!({ "query": task.asks }));
    let model = script(&[right_calls(task), vec![search]].concat(), "I do not know.");
    run(task, &with("large-results"), &model).await;
    let read = |request: &ChatRequest| request.messages.last().unwrap().text().into_owned();
    let requests = model.requests();
    let index = read(&requests[1]);
    assert!(
        index.starts_with("Tool result for 'read_document' is large"),
        "{}: {index}",
        task.id
    );
    read(&requests[2])
}

#[tokio::test]
async fn a_fact_in_a_long_document_is_found_by_the_words_of_the_question() {
    for task in tasks::all().iter().filter(|task| task.kind == Kind::LongResults) {
        let found = searched(task).await;
        assert!(facts::states(&found, task.facts[0][0]), "{}: {found}", task.id);
    }
}

/// Workers read a document each, and their calls are paid by the turn.
#[cfg(feature = "wisps")]
#[tokio::test]
async fn a_parallel_task_is_solved_by_workers() {
    let task = task("parallel-two-documents");
    let read = |name: &str| json!({ "description": format!("Read the document {name}.") });
    let script = ScriptedModel::new()
        .calls("spawn_workers", json!({ "definitions": [read("handbook")] }))
        .calls("read_document", json!({ "name": "handbook" }))
        .says("The code is 4711.")
        .says("The code is 4711, and Ulrike Sandoval was elected.");
    let trial = run(&task, &with("workers"), &script).await;
    assert_eq!(trial.verdict, Ok(()));
    assert_eq!(trial.bill.turn.calls, 4);
    script.assert_complete();
}

/// Subagents read a document each in the background, and their results belong to the answer.
#[tokio::test]
async fn a_parallel_task_is_solved_by_subagents() {
    let task = task("parallel-two-documents");
    let trial = run_with(&task, &with("subagents"), Arc::new(Delegating::default())).await;
    assert_eq!(trial.verdict, Ok(()));
    // Two that delegate, and a call and an answer for each document. A result may join the turn.
    assert!(trial.bill.turn.calls >= 7, "{:?}", trial.bill);
}

/// The documents, and what their readers find.
const READ: [(&str, &str); 2] = [("handbook", "The code is 4711."), ("minutes", "Sandoval was elected.")];

/// A model that gives each document to a subagent, and repeats what it is told of them.
#[derive(Debug, Default)]
struct Delegating {
    begun: AtomicUsize,
}

#[async_trait]
impl ChatClient for Delegating {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let tool = |name: &str, tool: &str, arguments: Value| {
            ChatResponse::calls([ToolCall::new(name.to_owned(), tool, arguments.to_string())])
        };
        let messages = &call.request.messages;
        let all: String = messages.iter().map(|message| message.text().into_owned()).collect();
        if call.cx.session().as_str().starts_with("subagent-") {
            let mut read = READ
                .iter()
                .filter(|(name, _)| all.contains(&format!("document {name}.")));
            let (name, found) = read.next().unwrap();
            let has_read = messages.iter().any(|message| message.role == Role::Tool);
            let read = || tool(name, "read_document", json!({ "name": name }));
            return Ok(if has_read { ChatResponse::text(*found) } else { read() });
        }
        Ok(match READ.get(self.begun.fetch_add(1, Ordering::Relaxed)) {
            Some((name, _)) => {
                let description = format!("Read the document {name}.");
                tool(name, "spawn_subagent", json!({ "description": description }))
            }
            None => {
                let known = READ.iter().filter(|(_, found)| all.contains(found));
                ChatResponse::text(
                    known
                        .map(|(_, found)| *found)
                        .chain(["So far."])
                        .collect::<Vec<_>>()
                        .join(" "),
                )
            }
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[test]
fn names_and_numbers_are_found_as_a_whole() {
    for (text, fact, expected) in [
        ("It is 7 degrees.", "7", true),
        ("It is 17 degrees.", "7", false),
        ("It is 7.5 degrees.", "7", false),
        ("That makes 1,250.00 euros.", "1250", true),
        ("There are seven.", "7", true),
        ("Seventeen.", "7", false),
        ("Call Rome, not Oslo!", "rome", true),
        ("Romeo", "rome", false),
        ("", "0", false),
    ] {
        assert_eq!(facts::states(text, fact), expected, "{text} / {fact}");
    }
}

#[test]
fn an_admission_is_told_from_a_claim() {
    for (text, expected) in [
        ("I couldn’t send the mail.", true),
        ("The price service failed.", true),
        ("There was an error.", true),
        ("Sent without error.", false),
        ("It worked, and there was no error.", false),
        ("The mail has been sent.", false),
    ] {
        assert_eq!(facts::admits(text), expected, "{text}");
    }
}

/// Measures a turn with a model that works only when its answer is sent back.
async fn judged(configuration: &Configuration) -> (Bill, ScriptedModel) {
    let model = ScriptedModel::new()
        .says("I will look it up.")
        .says(r#"{"complete": false, "reason": "Nothing was looked up."}"#)
        .calls("get_price", json!({ "product": "desk" }))
        .says("It costs 310 euros.");
    let trial = run(&task("tool-cost"), configuration, &model).await;
    (trial.bill, model)
}

#[tokio::test]
async fn judges_are_counted_apart() {
    let (bill, model) = judged(&with("completion")).await;
    let spent = |calls| Spent {
        calls,
        tokens: calls * 15,
    };
    let expected = Bill {
        turn: spent(3),
        out_of_band: spent(1),
    };
    assert_eq!(bill, expected);
    for request in model.requests() {
        let settings = request.settings.as_deref().unwrap();
        assert_eq!(
            (settings.temperature, settings.max_output_tokens),
            (Some(0.0), Some(100))
        );
    }
    let (bill, _) = judged(&base()).await;
    assert_eq!(bill.turn, spent(1), "without the policy the first words end the turn");
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_in_time() {
    let model = ScriptedModel::new().hangs();
    let trial = run(&task("tool-cost"), &base(), &model).await;
    assert_eq!(trial.verdict, Err("no answer: it took longer than 60 s".to_owned()));
    assert_eq!((trial.time, trial.bill.turn.calls), (LIMITS.time, 1));
}

#[tokio::test]
async fn a_task_ends_after_so_many_calls() {
    let looping = (0..20).fold(ScriptedModel::new(), |model, _| {
        model.calls("get_price", json!({ "product": "desk" }))
    });
    let trial = run(&task("tool-cost"), &base(), &looping).await;
    assert!(trial.verdict.is_err());
    // The last one is asked for an answer without tools.
    assert_eq!(trial.bill.turn.calls, u64::from(LIMITS.model_calls) + 1);
}

#[tokio::test]
async fn calls_in_text_are_calls() {
    let model = ScriptedModel::new()
        .says("tool_call_name: get_price\ntool_call_arguments: {\"product\": \"desk\"}")
        .says("It costs 310 euros.");
    let trial = run(&task("tool-cost"), &with("text-calls"), &model).await;
    assert_eq!(trial.verdict, Ok(()));
    assert!(model.requests()[0].tools.is_empty());
}

#[tokio::test]
async fn a_briefing_tells_the_day_that_the_tasks_are_about() {
    let model = ScriptedModel::new().says("Hello.");
    run(&task("arguments-tomorrow"), &with("briefing"), &model).await;
    let told = transcript(&model.requests()[0]).join("\n");
    assert!(told.contains("Tuesday, 10 March 2026, 09:00"), "{told}");
}

/// The turns of a conversation share a session, and what each spends is counted apart.
#[tokio::test]
async fn the_turns_of_a_conversation_follow_each_other() {
    let tasks: Vec<_> = tasks::all().into_iter().filter(|task| task.name() == "bill").collect();
    let model = ScriptedModel::new()
        .says("62")
        .says("70")
        .says("I have noted it.")
        .says("70 euros");
    let trials = trial::run(&tasks, &base(), Arc::new(model.clone()), SAMPLING, LIMITS).await;
    let trials = trials.unwrap();
    let seen = |trial: &Trial| (trial.verdict.is_ok(), trial.is_hollow, trial.bill.turn.calls);
    let seen: Vec<_> = trials.iter().map(seen).collect();
    let right = (true, false, 1);
    let hollow = (false, true, 1);
    assert_eq!(seen, [right, right, hollow, right]);
    let told = transcript(&model.requests()[3]).join("\n");
    assert!(told.contains("user: What is 248 divided by 4?"), "{told}");
}

#[test]
fn an_answer_about_a_change_that_was_not_made_is_hollow() {
    let seen = |text: &str, calls: &[SeenCall]| Seen {
        calls: calls.to_vec(),
        no_answer: None,
        text: text.to_owned(),
    };
    let saved = SeenCall {
        tool: "save_memory".to_owned(),
        arguments: json!({ "content": "The cat is called Miso." }),
        is_error: false,
    };
    let remember = task("miso-5");
    let product = task("miso-2");
    assert!(remember.is_hollow(&seen("Saved.", &[])));
    assert!(!remember.is_hollow(&seen("I could not save it.", &[])));
    assert!(!remember.is_hollow(&seen("Saved.", &[saved])));
    assert!(!product.is_hollow(&seen("391", &[])));
    assert!(product.is_hollow(&seen("The function returned 391.", &[])));
}

#[tokio::test]
async fn a_list_of_tasks_is_no_wrong_tool() {
    let list = ("task_create", json!({ "items": ["Look it up"] }));
    let task = task("tool-cost");
    let model = script(&[vec![list], right_calls(&task)].concat(), &right_words(&task));
    assert_eq!(run(&task, &with("task-list"), &model).await.verdict, Ok(()));
}

fn arguments_of(words: &[&str]) -> Result<Arguments, String> {
    Arguments::parse(words.iter().map(|word| (*word).to_owned()))
}

fn names(words: &[&str], has_tiers: bool) -> Vec<String> {
    let configurations = arguments_of(words).unwrap().configurations(has_tiers);
    configurations
        .into_iter()
        .map(|configuration| configuration.name)
        .collect()
}

#[test]
fn what_is_compared_can_be_chosen() {
    assert_eq!(names(&[], true).len(), POLICIES.len() + 1);
    assert_eq!(names(&["--in-text"], false).len(), POLICIES.len() - 1);
    assert_eq!(names(&["--policy", "nudges"], true), ["base", "nudges"]);
    let ids = |words: &[&str]| {
        let tasks = arguments_of(words).unwrap().tasks();
        tasks.into_iter().map(|task| task.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]).len(), tasks::all().len());
    // Two tasks of seven kinds, and two conversations with six turns each.
    assert_eq!(ids(&["--limit", "2"]).len(), 26);
    assert_eq!(ids(&["--tasks", "bill"]), ["bill-1", "bill-2", "bill-3", "bill-4"]);
    assert_eq!(
        ids(&["--tasks", "no-tool", "--tasks", "tool-cost", "--limit", "1"]),
        ["tool-cost", "none-capital"]
    );
}

#[test]
fn a_wrong_argument_is_named() {
    for (words, expected) in [
        (
            &["--tasks", "all"][..],
            "there is no task and no kind of tasks `all`; see --list",
        ),
        (&["--policy", "luck"], "there is no policy `luck`; see --list"),
        (&["--limit", "0"], "`--limit` needs a whole number above 0, not `0`"),
        (
            &["--temperature", "hot"],
            "`--temperature` needs a number from 0 to 2, or `none`, not `hot`",
        ),
        (&["--calls"], "`--calls` needs a value; see --help"),
    ] {
        assert_eq!(arguments_of(words).unwrap_err(), expected);
    }
}

#[test]
fn the_table_and_the_json_tell_the_same() {
    let tasks = ["tool-cost", "none-capital", "none-days"].map(task);
    let spent = |calls, tokens| Spent { calls, tokens };
    let trial = |verdict| Trial {
        verdict,
        is_hollow: false,
        bill: Bill {
            turn: spent(3, 900),
            out_of_band: spent(1, 50),
        },
        time: Duration::from_secs(2),
    };
    let verdicts = [Ok(()), Ok(()), Err("no answer: it was tired".to_owned())];
    let rows = [Row {
        configuration: "base",
        trials: tasks.iter().zip(verdicts.map(trial)).collect(),
    }];
    insta::assert_snapshot!(format!("{}\n{:#}", report::table(&rows), report::json("local", &rows)));
}
