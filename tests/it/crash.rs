//! The end of the process at every journal record.
//!
//! A child process runs two messages and stops for good before or after one of its journal
//! writes; there it is killed, and a second child gets the messages again that have no reply yet.
//! What the tools did stands in a file.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, Role};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{
    Effect, Recovery, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};
use rockbot_core::turn::{BusyPolicy, JournalError, TurnFailure, TurnOutcome, TurnRequest, TurnStatus};
use rockbot_host::{AgentHost, AgentHostBuilder, Stores};
use rockbot_store::file::FileTurnJournal;
use serde_json::{Value, json};

use crate::support::journal::{Around, Counting};
use crate::support::{Notes, calls, ending, host_of, noting_tool, results, settle};

/// A model that decides by the conversation alone, as it must after a crash: two rounds of calls,
/// then what it was told.
pub(crate) struct Planner;

#[async_trait]
impl ChatClient for Planner {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let rounds = call
            .request
            .messages
            .iter()
            .filter(|message| !message.tool_calls.is_empty())
            .count();
        Ok(match rounds {
            0 => calls([
                ("1", "look", "{}"),
                ("2", "put", "{}"),
                ("3", "send", "{}"),
                ("4", "look", "{}"),
                ("5", "send", "{}"),
            ]),
            1 => calls([("6", "put", "{}"), ("7", "send", "{}")]),
            _ => ChatResponse::text(results(&call.request).join("\n")),
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// The calls of the planner, under their ids.
pub(crate) const PLAN: [(&str, &str); 7] = [
    ("1", "look"),
    ("2", "put"),
    ("3", "send"),
    ("4", "look"),
    ("5", "send"),
    ("6", "put"),
    ("7", "send"),
];

const CALLS: [(&str, Effect); 3] = [
    ("look", Effect::Pure),
    ("put", Effect::Idempotent),
    ("send", Effect::Mutating),
];

/// The folder in which the processes of a test leave their traces.
#[derive(Debug, Clone)]
pub(crate) struct World(pub(crate) PathBuf);

impl World {
    pub(crate) fn append(&self, file: &str, line: &str) {
        let mut file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.0.join(file))
            .unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.join(file)).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// Counts how often each line stands in a file.
    pub(crate) fn counts(&self, file: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.lines(file)
            .into_iter()
            .for_each(|line| *counts.entry(line).or_default() += 1);
        counts
    }

    pub(crate) fn tools(&self, recovers: bool) -> impl Iterator<Item = Tool> {
        let world = self.clone();
        CALLS.into_iter().map(move |(name, effect)| {
            let registration = ToolRegistration::new(name, "Acts.", json!({"type": "object"}));
            let acting = Acting(world.clone(), recovers);
            Tool::new(registration, acting).effect(effect).trusted_effect("a test")
        })
    }
}

/// A tool that leaves a line when it begins and one when it ends.
#[derive(Debug)]
struct Acting(World, bool);

#[async_trait]
impl ToolExecutor for Acting {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let name = format!("{} {} {}", request.session_id, request.tool_call_id, request.tool_name);
        self.0.append("effects", &format!("{name} begins"));
        tokio::task::yield_now().await;
        self.0.append("effects", &format!("{name} ends"));
        Ok(request.succeed("done"))
    }

    async fn recover(&self, request: &ToolInvokeRequest, _: &CallContext) -> Recovery {
        let name = format!("{} {} {}", request.session_id, request.tool_call_id, request.tool_name);
        let ended = self.0.lines("effects").contains(&format!("{name} ends"));
        if self.1 && ended {
            Recovery::Finished(request.clone().succeed("done before the crash"))
        } else {
            Recovery::Unknown
        }
    }
}

/// Stops the process, as far as an observer can tell, around one write.
#[derive(Debug)]
struct StopAt {
    write: usize,
    before: bool,
}

impl StopAt {
    async fn stop(&self) {
        println!("\nstopped");
        std::future::pending::<()>().await;
    }
}

#[async_trait]
impl Around for StopAt {
    async fn before(&self, write: usize) -> Result<(), JournalError> {
        if self.before && write == self.write {
            self.stop().await;
        }
        Ok(())
    }

    async fn after(&self, write: usize) {
        if !self.before && write == self.write {
            self.stop().await;
        }
    }
}

const MESSAGES: [&str; 2] = ["a", "b"];

/// Delivers every message that has no reply yet.
#[tokio::test]
#[ignore = "runs as a child process of another test"]
async fn child() {
    let var = |name: &str| std::env::var(name).unwrap();
    let world = World(PathBuf::from(var("WORLD")));
    let stop = StopAt {
        write: var("STOP").parse().unwrap(),
        before: var("BEFORE") == "true",
    };
    let journal = FileTurnJournal::open(world.0.join("turns")).unwrap();
    let host = AgentHost::in_memory()
        .chat(Planner)
        .stores(Stores::new().with_journal(Counting::new(journal, stop)));
    let host = world
        .tools(var("RECOVERS") == "true")
        .fold(host, AgentHostBuilder::tool)
        .build()
        .unwrap();
    if var("RESUMES") == "true" {
        host.resume().await.unwrap();
    }
    for message in MESSAGES {
        let name = format!("{message} ");
        if world.lines("replies").iter().any(|line| line.starts_with(&name)) {
            continue;
        }
        let outcome = host
            .agent()
            .run(TurnRequest::new(message, message, "go"))
            .await
            .unwrap();
        let text = outcome.text.replace('\n', " | ");
        world.append("replies", &format!("{message} {:?} {text}", outcome.status));
    }
    println!("\nfinished");
}

#[derive(Debug, Clone, Copy)]
struct Case {
    write: usize,
    before: bool,
    recovers: bool,
    resumes: bool,
}

/// Runs a child to the point where it stops, and kills it there. Returns whether it did stop.
fn run_child(world: &World, case: Case) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "crash::child",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("WORLD", &world.0)
        .env("STOP", case.write.to_string())
        .env("BEFORE", case.before.to_string())
        .env("RECOVERS", case.recovers.to_string())
        .env("RESUMES", case.resumes.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let last = lines.find(|line| line == "stopped" || line == "finished");
    // SIGKILL on Unix.
    child.kill().unwrap();
    child.wait().unwrap();
    last.unwrap_or_else(|| panic!("the child ended by itself in {case:?}")) == "stopped"
}

/// The calls of a journal that have ended, and those that began, as `session id`.
fn calls_in(journal: &str) -> (Vec<String>, Vec<String>) {
    let mut ended = Vec::new();
    let mut begun = Vec::new();
    let mut sessions = BTreeMap::new();
    for line in journal.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Value::Object(accepted) = &line["accepted"] {
            sessions.insert(text(&accepted["run"]), text(&accepted["key"]["session"]));
        }
        let event = &line["record"]["record"]["body"]["event"];
        let Some(session) = sessions.get(&text(&line["record"]["run"])) else {
            continue;
        };
        if let Some(call) = event["tool_returned"]["toolCallId"].as_str() {
            ended.push(format!("{session} {call}"));
        }
        if let Some(call) = event["tool_started"]["call"].as_str() {
            begun.push(format!("{session} {call}"));
        }
    }
    (ended, begun)
}

/// Kills a process as `case` says, lets another one go on, and checks what they did together.
/// Returns whether there was anything to kill.
fn check(case: Case) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let world = World(folder.path().to_owned());
    if !run_child(&world, case) {
        return false;
    }
    let journal = std::fs::read_to_string(world.0.join("turns/turns-00000001.jsonl")).unwrap_or_default();
    let (ended, begun) = calls_in(&journal);
    let before = world.counts("effects");
    assert!(
        !run_child(&world, Case { write: 0, ..case }),
        "nothing stops the second process"
    );

    let replies = world.lines("replies");
    let to: Vec<_> = replies.iter().map(|line| &line[..1]).collect();
    assert_eq!(to, MESSAGES, "{case:?}: one final reply each, got {replies:#?}");
    let after = world.counts("effects");
    for message in MESSAGES {
        let reply = replies.iter().find(|line| line.starts_with(message)).unwrap();
        assert!(reply.starts_with(&format!("{message} Answered ")), "{case:?}: {reply}");
        for (id, tool) in PLAN {
            let call = format!("{message} {id}");
            let count = |counts: &BTreeMap<String, usize>, what| {
                counts
                    .get(&format!("{call} {tool} {what}"))
                    .copied()
                    .unwrap_or_default()
            };
            let then = count(&before, "begins");
            let runs = count(&after, "begins");
            let ends = count(&after, "ends");
            if ended.contains(&call) {
                assert_eq!((runs, then), (1, 1), "{case:?}: {call} had finished");
            }
            let told = match (tool, begun.contains(&call) && !ended.contains(&call)) {
                ("send", true) => {
                    assert_eq!(runs, then, "{case:?}: {call} may have run");
                    let known = case.recovers && ends == 1;
                    if known {
                        "done before the crash"
                    } else {
                        "outcome unknown"
                    }
                }
                _ => "done",
            };
            let most = if tool == "send" { 1 } else { 2 };
            assert!(runs <= most, "{case:?}: {call} ran {runs} times");
            assert!(
                reply.contains(&format!("{id}: {told}")),
                "{case:?}: {call} should be {told} in {reply}"
            );
        }
    }
    true
}

fn kill_at_every_write(recovers: bool) {
    let mut kills = 0;
    for before in [true, false] {
        let cases = (1..).map(|write| Case {
            write,
            before,
            recovers,
            resumes: write % 2 == 0,
        });
        kills += cases.take_while(|case| check(*case)).count();
    }
    assert!(kills > 40, "{kills} kills");
}

#[test]
fn a_kill_at_any_write_leads_to_one_reply_and_repeats_nothing_that_must_not_be() {
    kill_at_every_write(false);
}

#[test]
fn a_tool_that_knows_what_became_of_its_call_is_believed() {
    kill_at_every_write(true);
}

/// The journal of a turn that `request` started, whole.
pub(crate) async fn journal_of(host: AgentHostBuilder, request: &TurnRequest) -> String {
    let folder = tempfile::tempdir().unwrap();
    let host = host.data_dir(folder.path()).build().unwrap();
    let outcome = host.agent().run(request.clone()).await.unwrap();
    if let TurnStatus::Parked(asks) = outcome.status {
        for ask in asks {
            host.agent().decide(ask.approve()).await.unwrap();
        }
        host.agent().outcome(&outcome.turn).await.unwrap();
    }
    read_journal(folder.path())
}

pub(crate) fn read_journal(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("turns/turns-00000001.jsonl")).unwrap()
}

/// Folders with the first 0, 1, 2, … lines of a journal.
pub(crate) fn prefixes(journal: &str) -> impl Iterator<Item = (String, tempfile::TempDir)> {
    let lines: Vec<_> = journal.split_inclusive('\n').collect();
    (0..=lines.len()).map(move |count| {
        let folder = tempfile::tempdir().unwrap();
        let prefix = lines[..count].concat();
        std::fs::create_dir(folder.path().join("turns")).unwrap();
        std::fs::write(folder.path().join("turns/turns-00000001.jsonl"), &prefix).unwrap();
        (prefix, folder)
    })
}

#[tokio::test]
async fn a_journal_cut_after_any_record_leads_to_one_reply_and_repeats_nothing_that_must_not_be() {
    let request = TurnRequest::new("a", "a", "go");
    let scratch = tempfile::tempdir().unwrap();
    let host = AgentHost::in_memory().chat(Planner);
    let world = World(scratch.path().to_owned());
    let journal = journal_of(world.tools(false).fold(host, AgentHostBuilder::tool), &request).await;
    assert!(journal.lines().count() >= 20, "{journal}");
    for (prefix, folder) in prefixes(&journal) {
        let world = World(folder.path().to_owned());
        let host = AgentHost::in_memory().chat(Planner).data_dir(folder.path());
        let host = world.tools(false).fold(host, AgentHostBuilder::tool).build().unwrap();
        let outcome = host.agent().run(request.clone()).await.unwrap();
        assert_eq!(outcome.status, TurnStatus::Answered);
        assert_eq!(host.agent().run(request.clone()).await.unwrap(), outcome);
        let (ended, begun) = calls_in(&prefix);
        for (line, runs) in world.counts("effects") {
            let call = line[..3].to_owned();
            let tool = &line[4..8];
            assert!(!ended.contains(&call), "{call} had finished after\n{prefix}");
            assert!(
                tool != "send" || !begun.contains(&call),
                "{call} may have run after\n{prefix}"
            );
            assert_eq!(runs, 1);
        }
    }
}

#[tokio::test]
async fn a_turn_with_an_approval_survives_a_cut_after_any_record() {
    let request = TurnRequest::new("a", "a", "go");
    let host_with = |notes: &mut Option<Notes>| {
        let (pay, paid) = noting_tool("pay");
        *notes = Some(paid);
        let model = PayingModel;
        AgentHost::in_memory()
            .chat(model)
            .tool(pay.effect(Effect::Mutating).needs_approval())
    };
    let journal = journal_of(host_with(&mut None), &request).await;
    for (prefix, folder) in prefixes(&journal) {
        for resumes in [false, true] {
            let mut paid = None;
            let copy = tempfile::tempdir().unwrap();
            std::fs::create_dir(copy.path().join("turns")).unwrap();
            std::fs::copy(
                folder.path().join("turns/turns-00000001.jsonl"),
                copy.path().join("turns/turns-00000001.jsonl"),
            )
            .unwrap();
            let host = host_with(&mut paid).data_dir(copy.path()).build().unwrap();
            if resumes {
                host.resume().await.unwrap();
            }
            let mut outcome = host.agent().run(request.clone()).await.unwrap();
            if let TurnStatus::Parked(asks) = &outcome.status {
                host.agent().decide(asks[0].approve()).await.unwrap();
                outcome = host.agent().outcome(&outcome.turn).await.unwrap();
            }
            assert_eq!(outcome.status, TurnStatus::Answered, "after\n{prefix}");
            let begun = !calls_in(&prefix).1.is_empty();
            assert_eq!(paid.unwrap().all().len(), usize::from(!begun), "after\n{prefix}");
        }
    }
}

/// Pays once and says what it was told.
struct PayingModel;

#[async_trait]
impl ChatClient for PayingModel {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let told = results(&call.request);
        Ok(if told.is_empty() {
            calls([("1", "pay", r#"{"n":7}"#)])
        } else {
            ChatResponse::text(told.join(" "))
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test]
async fn a_host_that_stops_in_good_order_interrupts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let request = TurnRequest::new("s", "m1", "go");
    let host_with = |model: &ScriptedModel| host_of(model).data_dir(folder.path()).build().unwrap();
    let host = host_with(&ScriptedModel::new().hangs());
    let running = host.agent().stream_turn(request.clone());
    settle().await;
    host.shutdown(Duration::from_secs(5)).await;
    drop((running, host));
    for _ in 0..6 {
        let host = host_with(&ScriptedModel::new().hangs());
        assert_eq!(host.resume().await.unwrap().running, [request.turn_id()]);
        settle().await;
        host.shutdown(Duration::from_secs(5)).await;
    }
    let host = host_with(&ScriptedModel::new().says("at last"));
    let outcome = host.agent().run(request).await.unwrap();
    assert_eq!(ending(&outcome), (&TurnStatus::Answered, "at last"));
}

#[tokio::test]
async fn a_turn_that_is_interrupted_again_and_again_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let request = TurnRequest::new("s", "m1", "go");
    let host_with = |model: &ScriptedModel| {
        let (look, _) = noting_tool("look");
        host_of(model).tool(look).data_dir(folder.path()).build().unwrap()
    };
    let host = host_with(&ScriptedModel::new().calls("look", json!({})).hangs());
    let running = host.agent().stream_turn(request.clone());
    settle().await;
    host.shutdown(Duration::from_secs(5)).await;
    drop((running, host));
    forget_that_it_stopped(folder.path());
    for _ in 0..3 {
        let model = ScriptedModel::new().hangs();
        let host = host_with(&model);
        assert_eq!(host.resume().await.unwrap().running, [request.turn_id()]);
        settle().await;
        assert_eq!(model.requests().len(), 1, "it is tried again");
        host.shutdown(Duration::from_secs(5)).await;
        drop(host);
        forget_that_it_stopped(folder.path());
    }
    let host = host_with(&ScriptedModel::new());
    let outcome = host.agent().run(request.clone()).await.unwrap();
    assert_eq!(
        ending(&outcome),
        (
            &TurnStatus::Failed(TurnFailure::Interrupted),
            "This request was interrupted 4 times, so it was given up. Done before that: look."
        )
    );
    assert_eq!(host.agent().run(request).await.unwrap(), outcome);
}

/// Works once, and then answers to everything that was said.
struct Attentive;

#[async_trait]
impl ChatClient for Attentive {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let messages = &call.request.messages;
        if !messages.iter().any(|message| !message.tool_calls.is_empty()) {
            return Ok(calls([("1", "work", "{}")]));
        }
        let said = messages.iter().filter(|message| message.role == Role::User);
        let said: Vec<_> = said.map(|message| message.text().into_owned()).collect();
        Ok(ChatResponse::text(said.join(", ")))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test]
async fn a_message_that_joined_another_one_is_answered_once_after_a_cut_after_any_record() {
    let first = TurnRequest::new("s", "one", "one");
    let second = TurnRequest::new("s", "two", "two").with_busy(BusyPolicy::Steer);
    let folder = tempfile::tempdir().unwrap();
    let (work, mut handle) = mock_tool("work");
    let host = AgentHost::in_memory()
        .chat(Attentive)
        .tool(work)
        .data_dir(folder.path())
        .build()
        .unwrap();
    let running = [first.clone(), second.clone()].map(|request| {
        let agent = host.agent().clone();
        tokio::spawn(async move { agent.run(request).await.unwrap() })
    });
    settle().await;
    handle.next_call().await.respond("ok");
    let [one, two] = running;
    assert_eq!(
        (one.await.unwrap().text, two.await.unwrap().text),
        ("one, two".to_owned(), "one, two".to_owned())
    );
    let journal = read_journal(folder.path());

    for (prefix, folder) in prefixes(&journal) {
        for (order, resumes) in [([0, 1], false), ([1, 0], false), ([0, 1], true), ([1, 0], true)] {
            let replies = redeliver(&folder, [&first, &second], order, resumes).await;
            let [one, two] = &replies;
            assert_eq!(one.status, TurnStatus::Answered, "after\n{prefix}");
            if prefix.contains("user_said") {
                assert_eq!(one.text, "one, two", "after\n{prefix}");
                assert_eq!(
                    ending(two),
                    (&TurnStatus::Joined(one.turn.clone()), "one, two"),
                    "after\n{prefix}"
                );
            }
            assert!(
                two.is_answer() && two.text.contains("two"),
                "got {two:?} after\n{prefix}"
            );
        }
    }
}

/// Delivers both messages again to a host that finds the journal in a copy of `folder`.
async fn redeliver(
    folder: &tempfile::TempDir,
    requests: [&TurnRequest; 2],
    order: [usize; 2],
    resumes: bool,
) -> [TurnOutcome; 2] {
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("turns")).unwrap();
    let segment = "turns/turns-00000001.jsonl";
    std::fs::copy(folder.path().join(segment), copy.path().join(segment)).unwrap();
    let work = noting_tool("work").0.effect(Effect::Mutating);
    let host = AgentHost::in_memory()
        .chat(Attentive)
        .tool(work)
        .data_dir(copy.path())
        .build()
        .unwrap();
    let host = Arc::new(host);
    if resumes {
        host.resume().await.unwrap();
    }
    let mut replies = [None, None];
    for index in order {
        let again = requests[index].clone().with_busy(BusyPolicy::Queue);
        replies[index] = Some(host.agent().run(again).await.unwrap());
    }
    replies.map(Option::unwrap)
}

/// Makes a journal look as if its process had been killed: without the records of stopping in
/// good order.
fn forget_that_it_stopped(folder: &Path) {
    let path = folder.join("turns/turns-00000001.jsonl");
    let lines = std::fs::read_to_string(&path).unwrap();
    let kept = lines.lines().filter(|line| !line.contains(r#""event":"halted""#));
    std::fs::write(&path, kept.flat_map(|line| [line, "\n"]).collect::<String>()).unwrap();
}
