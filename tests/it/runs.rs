//! Turns as runs: left and found again, with tools and a namespace of their own, run by the parts
//! of a host.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::chat::ChatRequest;
use rockbot_core::context::{Origin, Priority};
use rockbot_core::store::{StorePath, WorkingMemory};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{ToolFilter, ToolGroup, ToolSelector};
use rockbot_core::turn::{ResultMode, TurnError, TurnProgress, TurnQuery, TurnRequest, TurnRunner, TurnStatus};
use rockbot_core::{Principal, TurnId};
use rockbot_host::{AgentHost, AgentHostBuilder, TurnStream};
use rockbot_memory::Memory;
use serde_json::json;
use tokio::time::sleep;

use crate::support::{Notes, collect, ending, host_of, noting_tool, results, settle};

/// The reports of a stream as one word each, `Final` with its text.
async fn words(stream: TurnStream) -> Vec<String> {
    collect(stream).await.iter().map(word).collect()
}

fn word(report: &TurnProgress) -> String {
    match report {
        TurnProgress::Delta(text) => format!("said {text}"),
        TurnProgress::ToolStarted { tool, .. } => format!("started {tool}"),
        TurnProgress::ToolFinished { tool, content, .. } => format!("finished {tool}: {content}"),
        TurnProgress::Final(outcome) => format!("final {}", outcome.text),
        other => format!("{other:?}"),
    }
}

fn shown(request: &ChatRequest) -> Vec<&str> {
    request.tools.names().map(|name| name.as_str()).collect()
}

fn runner(host: &AgentHost) -> Arc<dyn TurnRunner> {
    host.parts().get::<dyn TurnRunner>().unwrap()
}

#[tokio::test]
async fn every_reader_of_a_turn_reads_it_from_where_it_wants() {
    let model = ScriptedModel::new().calls("look", json!({})).says("It rains.");
    let (look, mut handle) = mock_tool("look");
    let host = host_of(&model).tool(look.pure()).build().unwrap();
    let agent = host.agent();
    let turn = agent.ask("s", "How is the weather?").start().await.unwrap();
    let call = handle.next_call().await;

    let mut first = turn.stream().await.unwrap();
    assert_eq!(word(&first.next().await.unwrap().unwrap()), "started look");
    let read = first.sequence();
    let late = agent.attach_after(turn.id(), read).await.unwrap();
    let second = agent.attach(turn.id()).await.unwrap();
    assert_eq!(second.turn_id(), turn.id());
    call.respond("rain");

    let rest = ["finished look: rain", "said It rains.", "final It rains."];
    let whole: Vec<_> = std::iter::once("started look").chain(rest).collect();
    assert_eq!(words(second).await, whole);
    assert_eq!(words(first).await, rest);
    assert_eq!(words(late).await, rest);
    let ended = agent.attach(turn.id()).await.unwrap();
    assert_eq!(words(ended).await, ["final It rains."]);
}

#[tokio::test]
async fn a_turn_is_found_by_its_principal_alone() {
    let host = host_of(&ScriptedModel::new().hangs()).build().unwrap();
    let ann = host.agent().for_principal("ann");
    let turn = ann.ask("s", "hi").start().await.unwrap();
    let bob = host.agent().for_principal("bob");
    let unknown = TurnId::from("unknown");
    let theirs = bob.attach(turn.id()).await.map(drop).unwrap_err();
    assert!(matches!(theirs, TurnError::NotFound(id) if id == *turn.id()));
    let missing = ann.attach(&unknown).await.map(drop).unwrap_err();
    assert!(matches!(missing, TurnError::NotFound(id) if id == unknown));
    turn.cancel().await.unwrap();
    assert_eq!(turn.outcome().await.unwrap().status, TurnStatus::Cancelled);
}

#[tokio::test]
async fn a_turn_goes_on_without_its_reader() {
    let model = ScriptedModel::new().calls("look", json!({})).says("It rains.");
    let (look, mut handle) = mock_tool("look");
    let host = host_of(&model).tool(look.pure()).build().unwrap();
    let request = host.agent().ask("s", "How is the weather?");
    let turn = request.turn_id();
    let stream = request.stream();
    assert_eq!(*stream.turn_id(), turn);
    let call = handle.next_call().await;
    drop(stream);
    settle().await;
    let again = host.agent().attach(&turn).await.unwrap();
    call.respond("rain");
    assert_eq!(
        words(again).await,
        [
            "started look",
            "finished look: rain",
            "said It rains.",
            "final It rains."
        ]
    );
}

#[tokio::test]
async fn a_turn_is_found_again_after_a_restart_with_what_it_did_before() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |model: &ScriptedModel| {
        let (look, _) = noting_tool("look");
        let host = host_of(model).tool(look).data_dir(folder.path()).build().unwrap();
        host.start().await.unwrap();
        host
    };
    let model = ScriptedModel::new().calls("look", json!({})).hangs();
    let host = open(&model).await;
    let turn = host.agent().ask("s", "How is the weather?").start().await.unwrap();
    let id = turn.id().clone();
    settle().await;
    assert_eq!(model.requests().len(), 2);
    host.shutdown(Duration::from_secs(5)).await;
    assert!(matches!(turn.outcome().await, Err(TurnError::Interrupted(_))));
    drop((host, turn));

    let host = open(&ScriptedModel::new().says("It rains.")).await;
    let reader = host.agent().attach(&id).await.unwrap();
    let reports = words(reader).await;
    assert_eq!(reports[..2], ["started look", "finished look: look is done"]);
    assert_eq!(reports.last().unwrap(), "final It rains.");
}

/// A host with a tool that is always shown, one that needs an approval, and a group of two.
fn grouped(model: &ScriptedModel, folder: &Path) -> AgentHostBuilder {
    let files = ToolGroup::new("files", "reading and writing files");
    let named = |name: &'static str| noting_tool(name).0;
    host_of(model)
        .tool(named("add"))
        .tool(named("pay").needs_approval())
        .tool(named("read_file").on_demand(&files))
        .tool(named("write_file").on_demand(&files))
        .data_dir(folder)
}

#[tokio::test]
async fn a_turn_has_the_tools_of_its_filter_alone_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let filter = || ToolFilter::all().without(["add", "write_file"]);
    let model = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "files"}))
        .calls("add", json!({}))
        .calls("write_file", json!({}))
        .calls("pay", json!({}));
    let host = grouped(&model, folder.path()).build().unwrap();
    let turn = host.agent().ask("s", "Go.").tools(filter()).start().await.unwrap();
    let id = turn.id().clone();
    while host.agent().approvals().is_empty() {
        tokio::task::yield_now().await;
    }
    let requests = model.requests();
    assert_eq!(shown(&requests[0]), ["pay", "activate_tools"]);
    assert_eq!(shown(&requests[1]), ["pay", "activate_tools", "read_file"]);
    assert_eq!(
        results(&requests[3]),
        [
            "call_1: You have these tools now: read_file.",
            "call_2: there is no tool `add`. The tools are: pay, read_file",
            "call_3: there is no tool `write_file`. The tools are: pay, read_file",
        ]
    );
    host.shutdown(Duration::from_secs(5)).await;
    drop((host, turn));

    let model = ScriptedModel::new().calls("add", json!({})).says("paid");
    let host = grouped(&model, folder.path()).build().unwrap();
    host.start().await.unwrap();
    host.agent()
        .decide(host.agent().approvals()[0].approve())
        .await
        .unwrap();
    assert_eq!(host.agent().outcome(&id).await.unwrap().text, "paid");
    let requests = model.requests();
    assert_eq!(shown(&requests[0]), ["pay", "activate_tools", "read_file"]);
    assert!(results(&requests[1]).last().unwrap().contains("there is no tool `add`"));

    let model = ScriptedModel::new().says("hi");
    let plain = grouped(&model, tempfile::tempdir().unwrap().path()).build().unwrap();
    plain.agent().ask("s", "Go.").await.unwrap();
    assert_eq!(shown(&model.requests()[0]), ["add", "pay", "activate_tools"]);
}

#[tokio::test]
async fn an_agent_that_gives_itself_a_task_has_no_tool_that_its_caller_lacks() {
    let model = ScriptedModel::new()
        .calls("helper", json!({"task": "Add."}))
        .says("nothing to add with")
        .says("done");
    let (add, _) = noting_tool("add");
    let (look, _) = noting_tool("look");
    let host = host_of(&model).tool(add).tool(look).build().unwrap();
    let helper = host.agent().as_tool("helper", "Helps.");
    let helper = helper.with_tools(ToolFilter::all().without([ToolSelector::from("helper")]));
    host.add_tool(helper).unwrap();
    let without_add = ToolFilter::all().without(["add"]);
    host.agent().ask("s", "Go.").tools(without_add).await.unwrap();
    let requests = model.requests();
    assert_eq!(shown(&requests[0]), ["look", "helper"]);
    assert_eq!(shown(&requests[1]), ["look"]);
}

#[tokio::test]
async fn a_turn_keeps_its_namespace_of_working_memory_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = |model: &ScriptedModel| {
        let (pay, _) = noting_tool("pay");
        let host = host_of(model).add(Memory::default()).tool(pay.needs_approval());
        host.data_dir(folder.path()).build().unwrap()
    };
    let note = |key: &str, text: &str| json!({"key": key, "data": text});
    let model = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "working-memory"}))
        .calls("save_to_working_memory", note("found", "before"))
        .calls("pay", json!({}));
    let host = open(&model);
    let namespace = StorePath::new("patrol/heartbeat").unwrap();
    let request = TurnRequest::new("s", "m", "Look around.").with_namespace(namespace);
    let turn = runner(&host).start(request).await.unwrap();
    while host.agent().approvals().is_empty() {
        tokio::task::yield_now().await;
    }
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);

    let model = ScriptedModel::new()
        .calls("save_to_working_memory", note("later", "after"))
        .says("done");
    let host = open(&model);
    host.start().await.unwrap();
    host.agent()
        .decide(host.agent().approvals()[0].approve())
        .await
        .unwrap();
    assert_eq!(host.agent().outcome(&turn).await.unwrap().text, "done");
    let memory = host.parts().get::<dyn WorkingMemory>().unwrap();
    let entries = memory.list(&Principal::default(), None).await.unwrap();
    let mut keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["patrol/heartbeat/found", "patrol/heartbeat/later"]);
}

#[tokio::test]
async fn the_form_of_the_results_is_an_instruction() {
    let model = ScriptedModel::new().says("all of it");
    let host = host_of(&model).build().unwrap();
    let request = TurnRequest::new("s", "m", "List them.").with_result_mode(ResultMode::VerbatimOutput);
    host.agent().run(request).await.unwrap();
    let instruction = ResultMode::VerbatimOutput.instruction().unwrap();
    let told = model.requests()[0]
        .messages
        .iter()
        .any(|message| message.text().contains(instruction));
    assert!(told);
}

#[tokio::test]
async fn a_part_of_the_host_runs_lists_and_cancels_turns() {
    let model = ScriptedModel::new().hangs().hangs().says("done");
    let host = host_of(&model).build().unwrap();
    let turns = runner(&host);
    let request = |session: &str, id: &str| {
        TurnRequest::new(session, id, "Tidy up.")
            .with_origin(Origin::Scheduled)
            .with_priority(Priority::Scheduled)
            .with_principal("ann")
    };
    let first = turns.start(request("a", "1").with_parent("lead", 1)).await.unwrap();
    let second = turns.start(request("b", "1")).await.unwrap();
    assert_eq!(
        turns.start(request("b", "1")).await.unwrap(),
        second,
        "the same message is the same turn"
    );
    settle().await;
    assert!(!turns.is_idle());
    let found = |query: TurnQuery| {
        let mut found: Vec<_> = turns.live(&query).into_iter().map(|live| live.turn).collect();
        found.sort();
        found
    };
    let mut both = vec![first.clone(), second.clone()];
    both.sort();
    assert_eq!(found(TurnQuery::default().with_origin(Origin::Scheduled)), both);
    assert!(found(TurnQuery::default().with_principal("bob")).is_empty());
    assert_eq!(
        found(TurnQuery::default().with_session("b")),
        std::slice::from_ref(&second)
    );
    assert_eq!(
        found(TurnQuery::default().with_parent("lead")),
        std::slice::from_ref(&first)
    );

    let reader = turns.events(&first, 0).await.unwrap();
    assert_eq!(*reader.turn(), first);
    for turn in [&first, &second] {
        turns.cancel(turn).await.unwrap();
        assert_eq!(turns.outcome(turn).await.unwrap().status, TurnStatus::Cancelled);
    }
    settle().await;
    assert!(turns.is_idle());
    let ended = turns.run(request("c", "1")).await.unwrap();
    assert_eq!(ending(&ended), (&TurnStatus::Answered, "done"));
    drop(host);
    assert!(matches!(turns.start(request("d", "1")).await, Err(TurnError::Halted)));
    model.assert_complete();
}

/// Work in the background that notes its beginnings, its ends, and when it gave way.
async fn work(turns: Arc<dyn TurnRunner>, name: &'static str, notes: Notes) {
    loop {
        let slot = turns.background(Duration::from_secs(30)).await;
        notes.add(format!("{name} begins"));
        if slot.run(sleep(Duration::from_secs(60))).await.is_some() {
            return notes.add(format!("{name} ends"));
        }
        notes.add(format!("{name} gives way"));
    }
}

#[tokio::test(start_paused = true)]
async fn one_piece_of_work_at_a_time_runs_in_the_background_while_users_are_silent() {
    let (slow, mut calls) = mock_tool("slow");
    let model = ScriptedModel::new()
        .says("Hi.")
        .calls("slow", json!({}))
        .says("Done.")
        .says("Quiet.");
    let slow = slow.pure().time_limit(Duration::from_secs(600));
    let host = host_of(&model).tool(slow).build().unwrap();
    let notes = Notes::default();
    let agent = host.agent().clone();
    let second = Duration::from_secs(1);
    agent.ask("s", "Hello").await.unwrap();
    let working = ["one", "two"].map(|name| tokio::spawn(work(runner(&host), name, notes.clone())));
    sleep(29 * second).await;
    assert_eq!(notes.all(), [""; 0], "a user has just written");
    sleep(2 * second).await;
    assert_eq!(notes.all(), ["one begins"]);

    let asking = tokio::spawn(async move { agent.ask("s", "Go.").await });
    settle().await;
    assert_eq!(notes.all()[1..], ["one gives way"]);
    let call = calls.next_call().await;
    sleep(100 * second).await;
    assert_eq!(notes.all().len(), 2, "a turn works");
    // The turn of a schedule is no user's.
    let scheduled = TurnRequest::new("patrol", "m", "Look.").with_origin(Origin::Scheduled);
    call.respond("done");
    asking.await.unwrap().unwrap();
    sleep(31 * second).await;
    assert_eq!(notes.all()[2..], ["two begins"], "in the order of their waits");
    let patrol = host.agent().run(scheduled).await;
    assert!(patrol.is_ok(), "it needs no slot: {patrol:?}");
    for work in working {
        work.await.unwrap();
    }
    assert_eq!(notes.all()[3..], ["two ends", "one begins", "one ends"]);
}
