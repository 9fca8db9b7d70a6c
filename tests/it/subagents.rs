//! Subagents: work that a model gives to itself, told by its result.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot::prelude::FromConfig as _;
use rockbot::tools::subagents::Subagents;
use rockbot_core::Principal;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatRequest, ChatResponse, ModelInfo, ModelTier, Role};
use rockbot_core::config::Config;
use rockbot_core::content::Provenance;
use rockbot_core::store::{StorePath, WorkingMemory, WorkingNote};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::ToolFilter;
use rockbot_core::turn::{
    Budget, BudgetLimit, InMemoryTurnJournal, TurnJournal as _, TurnQuery, TurnRunner, TurnStatus,
};
use rockbot_host::{AgentHost, AgentHostBuilder, Stores};
use rockbot_memory::Memory;

use serde_json::{Value, json};

use crate::support::{noting_tool, results, settle, transcript};

fn shown(request: &ChatRequest) -> Vec<&str> {
    request.tools.names().map(|name| name.as_str()).collect()
}

/// Models by the words of the user's last message: turns that run side by side ask in no order.
#[derive(Debug, Clone)]
struct Models(Vec<(&'static str, ScriptedModel)>);

#[async_trait]
impl ChatClient for Models {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let mut newest = call.request.messages.iter().rev();
        let last = newest.find(|message| message.role == Role::User);
        let last = last.map(|message| message.text().into_owned()).unwrap_or_default();
        let (_, model) = self.0.iter().find(|(words, _)| last.contains(words)).expect(&last);
        model.chat(call).await
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// A host whose model answers "Begin." with `spawner`, a task about stars with `below`, and
/// results with `told`.
fn host(spawner: &ScriptedModel, below: &ScriptedModel, told: &ScriptedModel) -> AgentHostBuilder {
    let models = [("The background work", told), ("Begin.", spawner), ("", below)];
    AgentHost::in_memory().chat(Models(models.map(|(words, model)| (words, model.clone())).into()))
}

/// A model that activates the tools, makes these calls in one answer, and says "begun".
fn spawner(calls: impl IntoIterator<Item = (&'static str, Value)>) -> ScriptedModel {
    let model = ScriptedModel::new().calls("activate_tools", json!({"group": "subagents"}));
    model.calls_all(calls).says("begun")
}

fn spawn(description: &str) -> (&'static str, Value) {
    ("spawn_subagent", json!({ "description": description }))
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

/// The results of the calls of the last request, without that of the activation.
fn told(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    results(requests.last().unwrap()).split_off(1)
}

#[tokio::test(start_paused = true)]
async fn a_subagent_has_no_more_calls_tokens_and_cost_than_a_turn_of_the_host() {
    let arguments = json!({"description": "Count the stars.", "max_iterations": 40, "timeout_minutes": 120});
    let above = spawner([("spawn_subagent", arguments)]);
    let below = ScriptedModel::new().hangs();
    let limits = Budget::default()
        .with_max_model_calls(7)
        .with_max_tool_calls(9)
        .with_max_tokens(5_000);
    let host = host(&above, &below, &ScriptedModel::new())
        .budget(limits)
        .add(Subagents::new());
    let journal = Arc::new(InMemoryTurnJournal::default());
    let host = started(host.stores(Stores::new().with_journal(journal.clone()))).await;
    assert_eq!(host.agent().ask("main", "Begin.").await.unwrap().text, "begun");
    settle().await;
    let turns = host.parts().require::<dyn TurnRunner>().unwrap();
    let running = turns.live(&TurnQuery::default());
    let accepted = journal.read(&running[0].turn).await.unwrap().unwrap().accepted;
    let accepted: Value = accepted.body.parse().unwrap();
    let expected = limits.with_max_wall_clock(Duration::from_secs(120 * 60));
    assert_eq!(accepted["policy"]["budget"], json!(expected));
}

#[tokio::test(start_paused = true)]
async fn a_subagent_works_in_the_background_and_its_result_is_told() {
    let (look, mut looking) = mock_tool("look");
    let arguments = json!({"description": "Find out how cats purr.", "context": "For a child.", "timeout_minutes": 5});
    let above = spawner([("spawn_subagent", arguments)]);
    let below = ScriptedModel::new().calls("look", json!({})).says("With their larynx.");
    let result = ScriptedModel::new().says("Cats purr with their larynx.");
    let host = started(host(&above, &below, &result).tool(look.pure()).add(Subagents::new())).await;
    let agent = host.agent();
    assert_eq!(agent.ask("main", "Begin.").await.unwrap().text, "begun");
    looking.next_call().await.respond("a page about purring");
    let said = agent.announcements().next().await.unwrap();
    assert_eq!(
        (said.session.as_str(), said.content.as_text()),
        ("main", Some("Cats purr with their larynx."))
    );

    let asked = &below.requests()[0];
    let words = transcript(asked);
    let task = "user: Find out how cats purr.\n\nContext:\nFor a child.";
    assert!(words.last().unwrap().ends_with(&task["user: ".len()..]), "{words:?}");
    assert!(words[1].contains("You are a subagent"), "{words:?}");
    assert_eq!(
        shown(asked),
        ["look", "report_progress"],
        "no tools that delegate further"
    );
    let told = told(&above);
    assert!(told[0].starts_with("call_2: Subagent `"), "{told:?}");
    assert!(told[0].ends_with("do not spawn it again."), "{told:?}");
    assert!(!shown(&above.requests()[2]).contains(&"report_progress"));
    for model in [above, below, result] {
        model.assert_complete();
    }
}

#[tokio::test(start_paused = true)]
async fn the_result_names_what_the_subagent_saved_and_says_when_it_stopped_in_the_middle() {
    let above = spawner([spawn("Count the stars.")]);
    let below = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "working-memory"}))
        .calls("save_to_working_memory", json!({"key": "stars", "data": "6000"}))
        .says("Six thousand so far. Now let me save the rest…");
    let result = ScriptedModel::new().says("It is not finished.");
    let host = host(&above, &below, &result).add(Memory::default());
    let host = started(host.add(Subagents::new())).await;
    host.agent().ask("main", "Begin.").await.unwrap();
    assert_eq!(
        host.agent().announcements().next().await.unwrap().content,
        "It is not finished."
    );
    let words = transcript(&result.requests()[0]).pop().unwrap();
    let message = words.split_once("The background work").unwrap().1;
    let id = message.split("subagent/").nth(1).unwrap().split('/').next().unwrap();
    let expected = format!(
        " \"Count the stars.\" ended in the middle of its work. Its last words:\nSix thousand so far. Now let me save the \
         rest…\n\nIts calls: `activate_tools` 1, `save_to_working_memory` 1. Its notes are in working memory: `subagent/{id}/stars`. Tell the user the result in a short message of \
         your own."
    );
    assert_eq!(message, expected);
}

#[tokio::test(start_paused = true)]
async fn at_most_so_many_run_at_once_and_a_slot_is_free_when_one_has_ended() {
    let above = spawner([spawn("Task 1."), spawn("Task 2."), spawn("Task 1."), spawn("Task 3.")])
        .calls_all([spawn("Task 3.")])
        .says("begun");
    let below = ScriptedModel::new().hangs().hangs().hangs();
    let result = ScriptedModel::new().says("one was cancelled");
    let host = started(host(&above, &below, &result).add(Subagents::new().with_max_concurrent(2))).await;
    let agent = host.agent();
    agent.ask("main", "Begin.").await.unwrap();
    let refused = told(&above);
    assert!(
        refused[2].contains("works on this task already: wait for its result"),
        "{refused:?}"
    );
    assert!(
        refused[3].contains("2 subagents run already, which is the maximum: wait for a result, or cancel one of them"),
        "{refused:?}"
    );

    let turns = host.parts().get::<dyn TurnRunner>().unwrap();
    let live = turns.live(&TurnQuery::default());
    let first = live.iter().find(|live| live.request.content == "Task 1.").unwrap();
    turns.cancel(&first.turn).await.unwrap();
    let mut stream = agent.announcements();
    assert_eq!(stream.next().await.unwrap().content, "one was cancelled");
    agent.ask("main", "Begin.").await.unwrap();
    let requests = above.requests();
    let last = results(requests.last().unwrap());
    assert!(last[0].contains("works on it"), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_model_lists_and_cancels_its_subagents() {
    let above = spawner([spawn("Count | the stars.")]);
    let below = ScriptedModel::new().hangs();
    let result = ScriptedModel::new().says("It was cancelled.");
    let host = started(host(&above, &below, &result).add(Subagents::new())).await;
    let agent = host.agent();
    agent.ask("main", "Begin.").await.unwrap();
    let id = told(&above)[0].split('`').nth(1).unwrap().to_owned();
    let mistyped = format!("{}x", &id[..7]);

    let _ = above
        .calls("list_subagents", json!({}))
        .calls("cancel_subagent", json!({"task_id": mistyped}))
        .calls("cancel_subagent", json!({"task_id": id}));
    let answer = agent.ask("main", "Begin.").await.unwrap();
    assert_eq!(answer.text, "It was cancelled.", "the result joined the running turn");
    assert_eq!(
        results(&result.requests()[0]),
        [
            format!("call_3: | id | task | state |\n|---|---|---|\n| {id} | Count \\| the stars. | works |\n"),
            format!("call_4: no subagent `{mistyped}` is running: did you mean `{id}`?"),
            format!("call_5: Subagent `{id}` is cancelled."),
        ]
    );
    assert!(host.parts().get::<dyn TurnRunner>().unwrap().is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_subagent_tells_how_far_it_is_without_a_model() {
    let above = spawner([spawn("Count the stars.")]);
    let report = json!({"message": "The first thousand is done."});
    let below = ScriptedModel::new().calls("report_progress", report).hangs();
    let host = started(host(&above, &below, &ScriptedModel::new()).add(Subagents::new())).await;
    host.agent().ask("main", "Begin.").await.unwrap();
    let said = host.agent().announcements().next().await.unwrap();
    let words = "[Count the stars.] The first thousand is done.";
    assert_eq!((said.session.as_str(), said.content.as_text()), ("main", Some(words)));
    assert!(said.results.is_empty());
}

#[tokio::test(start_paused = true)]
async fn inputs_are_copied_and_a_missing_one_has_near_matches() {
    let sum_up = |key: &str| ("spawn_subagent", json!({"description": "Sum up.", "inputs": [key]}));
    let above = spawner([sum_up("notess"), sum_up("notes")]);
    let below = ScriptedModel::new().hangs();
    let host = host(&above, &below, &ScriptedModel::new()).add(Memory::default());
    let host = started(host.add(Subagents::new())).await;
    let memory = host.parts().get::<dyn WorkingMemory>().unwrap();
    let key = StorePath::new("session/main/notes").unwrap();
    let note = WorkingNote::new(key, "the whole story", Provenance::USER);
    memory.put(&Principal::default(), vec![note]).await.unwrap();
    host.agent().ask("main", "Begin.").await.unwrap();
    settle().await;
    assert_eq!(
        told(&above)[0],
        "call_2: there is no entry `session/main/notess` in working memory: did you mean `session/main/notes`?"
    );
    let entries = memory.list(&Principal::default(), None).await.unwrap();
    let copy = entries
        .iter()
        .find(|entry| entry.key.as_str().starts_with("subagent-inputs/"));
    let copy = copy.unwrap();
    assert_eq!(copy.value, "the whole story");
    let words = transcript(&below.requests()[0]).pop().unwrap();
    assert!(
        words.ends_with(&format!("Sum up.\n\nIn working memory: `{}`", copy.key)),
        "{words}"
    );
}

#[tokio::test]
async fn a_subagent_goes_on_after_a_restart_and_its_result_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |above: &ScriptedModel, below: &ScriptedModel, result: &ScriptedModel| {
        let (look, _) = noting_tool("look");
        let host = host(above, below, result).tool(look).add(Subagents::new());
        started(host.data_dir(folder.path())).await
    };
    let none = ScriptedModel::new();
    let above = spawner([spawn("Count the stars.")]);
    let host = open(&above, &ScriptedModel::new().hangs(), &none).await;
    let filter = ToolFilter::all().without(["look"]);
    host.agent().ask("main", "Begin.").tools(filter).await.unwrap();
    host.shutdown(Duration::from_secs(5)).await;
    drop(host);

    let below = ScriptedModel::new().says("Six thousand.");
    let result = ScriptedModel::new().says("There are six thousand stars.");
    let host = open(&none, &below, &result).await;
    let mut stream = host.agent().announcements();
    assert_eq!(stream.next().await.unwrap().content, "There are six thousand stars.");
    let asked = &below.requests()[0];
    assert_eq!(shown(asked), ["report_progress"], "as its spawner had them");
    assert!(transcript(asked)[1].contains("You are a subagent"));
    // Asked for the next one, the program has dealt with this one.
    assert!(
        tokio::time::timeout(Duration::from_millis(20), stream.next())
            .await
            .is_err()
    );
    host.shutdown(Duration::from_secs(5)).await;
    drop((host, stream));

    let host = open(&none, &none, &none).await;
    let mut stream = host.agent().announcements();
    assert!(
        tokio::time::timeout(Duration::from_millis(50), stream.next())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_subagent_ends_in_its_time() {
    let above = spawner([(
        "spawn_subagent",
        json!({"description": "Count the stars.", "timeout_minutes": 1}),
    )]);
    let below = ScriptedModel::new().hangs();
    let result = ScriptedModel::new().says("The time was over.");
    let host = started(host(&above, &below, &result).add(Subagents::new())).await;
    host.agent().ask("main", "Begin.").await.unwrap();
    let said = host.agent().announcements().next().await.unwrap();
    assert_eq!(said.content, "The time was over.");
    let ended = host.agent().outcome(&said.results[0]).await.unwrap();
    assert_eq!(ended.status, TurnStatus::Partial(BudgetLimit::WallClock));
}

async fn refusal(arguments: Value) -> String {
    let above = spawner([("spawn_subagent", arguments)]);
    let none = ScriptedModel::new();
    let host = started(host(&above, &none, &none).add(Subagents::new())).await;
    host.agent().ask("main", "Begin.").await.unwrap();
    told(&above).remove(0)
}

#[tokio::test(start_paused = true)]
async fn a_wrong_task_is_refused_in_words() {
    for (arguments, problem) in [
        (
            json!({"description": " "}),
            "call_2: `description` is empty: describe the task",
        ),
        (
            json!({"description": "x", "timeout_minutes": 0}),
            "call_2: invalid arguments for `spawn_subagent`:\n- `timeout_minutes` must be at least 1, got 0",
        ),
        (
            json!({"description": "x", "inputs": ["a"]}),
            "call_2: this agent has no working memory: leave out `inputs`",
        ),
        (
            json!({"description": "x".repeat(70_000)}),
            "call_2: the task has 70000 bytes, of 65536: save the material to working memory, and name it in `inputs`",
        ),
    ] {
        let told = refusal(arguments).await;
        assert!(told.starts_with(problem), "{told}");
    }
}

#[test]
fn settings_are_read_and_wrong_ones_are_refused() {
    let build = |text: &str| {
        let config = Config::new().with_text("agent.toml", text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let host = AgentHost::configured(&config, folder.path()).unwrap();
        host.chat(ScriptedModel::new())
            .build()
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        build("[Subagents]\nMaxConcurrentSubagents = 5\nDefaultTimeoutMinutes = 2"),
        Ok(())
    );
    let none = build("[Subagents]\nMaxConcurrentSubagents = 0").unwrap_err();
    assert!(none.contains("`Subagents.MaxConcurrentSubagents` and"), "{none}");
    let unknown = build("[Subagents]\nMaxConcurrent = 5").unwrap_err();
    assert!(unknown.contains("MaxConcurrentSubagents"), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_done_is_not_done_again_in_the_same_turn() {
    let (wait, mut waiting) = mock_tool("wait");
    let above = spawner([spawn("Count the stars."), ("wait", json!({}))]);
    let below = ScriptedModel::new().says("Six thousand.");
    let (name, arguments) = spawn("Count the stars.");
    let result = ScriptedModel::new()
        .calls(name, arguments)
        .says("There are six thousand.");
    let host = started(host(&above, &below, &result).tool(wait.pure()).add(Subagents::new())).await;
    let asking = host.agent().ask("main", "Begin.").start().await.unwrap();
    let call = waiting.next_call().await;
    settle().await;
    call.respond("waited");
    assert_eq!(asking.outcome().await.unwrap().text, "There are six thousand.");
    let refused = results(result.requests().last().unwrap()).pop().unwrap();
    assert!(
        refused.ends_with("has done this task already, and its result is told: do not spawn it again"),
        "{refused}"
    );
    below.assert_complete();
}
