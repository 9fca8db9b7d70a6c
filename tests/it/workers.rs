//! Workers: small tasks side by side, whose findings the caller reads at once.

use std::time::Duration;

use async_trait::async_trait;
use rockbot::prelude::FromConfig as _;
use rockbot::tools::workers::Workers;
use rockbot_core::Principal;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier, Role};
use rockbot_core::config::Config;
use rockbot_core::store::{StorePath, WorkingMemory};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::turn::{TurnQuery, TurnRunner};
use rockbot_host::{AgentHost, AgentHostBuilder};
use rockbot_memory::Memory;
use serde_json::{Value, json};

use crate::support::{noting_tool, results, settle, transcript};

/// Models by the words of the user's last message: workers ask in no order.
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

fn host(models: impl IntoIterator<Item = (&'static str, ScriptedModel)>) -> AgentHostBuilder {
    AgentHost::in_memory()
        .chat(Models(models.into_iter().collect()))
        .add(Workers::new())
}

/// A model that spawns these workers and ends with "done".
fn spawner(definitions: Value) -> ScriptedModel {
    let model = ScriptedModel::new().calls("activate_tools", json!({"group": "workers"}));
    let mut arguments = json!({});
    arguments["definitions"] = definitions;
    model.calls("spawn_workers", arguments).says("done")
}

async fn started(host: AgentHostBuilder) -> AgentHost {
    let host = host.build().unwrap();
    host.start().await.unwrap();
    host
}

/// The receipt that the model of the caller read.
fn receipt(model: &ScriptedModel) -> String {
    let requests = model.requests();
    let last = results(requests.last().unwrap()).pop().unwrap();
    last.strip_prefix("call_2: ").unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn workers_find_out_side_by_side_and_failures_are_told_first() {
    let above = spawner(json!([
        {"description": "Count the cats.", "context": "In the garden.", "result_key": "cats"},
        {"description": "Count the dogs."},
    ]));
    let long = "w".repeat(4_100);
    let cats = ScriptedModel::new().says(&long);
    let dogs = ScriptedModel::new().fails(ChatErrorKind::Auth);
    let (look, _calls) = mock_tool("look");
    let host = host([("Begin.", above.clone()), ("cats", cats.clone()), ("dogs", dogs)]);
    let host = started(host.tool(look).add(Memory::default())).await;
    assert_eq!(host.agent().ask("main", "Begin.").await.unwrap().text, "done");
    let text = receipt(&above);
    assert!(
        text.starts_with("PARTIAL FAILURE: 1 of 2 workers failed.\n\n## "),
        "{text}"
    );
    let failed = text.find("[failed] Count the dogs.").unwrap();
    let found = text.find("[ok] Count the cats.").unwrap();
    assert!(failed < found, "{text}");
    let key = text
        .split("the whole is in working memory, `")
        .nth(1)
        .unwrap()
        .split('`')
        .next()
        .unwrap();
    assert!(key.starts_with("worker/") && key.ends_with("/cats"), "{key}");
    assert!(text.contains(&format!("\nIn working memory: `{key}`")), "{text}");
    assert!(text.matches('w').count() < 4_050, "{text}");
    let memory = host.parts().get::<dyn WorkingMemory>().unwrap();
    let entry = memory
        .get(&Principal::default(), &StorePath::new(key).unwrap())
        .await
        .unwrap();
    assert_eq!(entry.unwrap().value, long);

    let asked = &cats.requests()[0];
    assert_eq!(asked.tier, Some(ModelTier::Low));
    let words = transcript(asked);
    assert!(
        words
            .last()
            .unwrap()
            .ends_with("Count the cats.\n\nContext:\nIn the garden."),
        "{words:?}"
    );
    assert!(words[1].contains("You are a worker"), "{words:?}");
    let tools: Vec<_> = asked.tools.names().map(|name| name.as_str()).collect();
    assert!(tools.contains(&"look") && tools.contains(&"search_memory"), "{tools:?}");
    for absent in ["save_memory", "spawn_workers", "change_rules"] {
        assert!(!tools.contains(&absent), "{absent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_has_few_tools_if_its_definition_says_so() {
    let allow = json!([{"description": "Look around.", "tools_allow": ["lo*", "other"]}]);
    let above = spawner(allow);
    let below = ScriptedModel::new().says("nothing");
    let host = host([("Begin.", above.clone()), ("Look", below.clone())]);
    let host = host.tool(noting_tool("look").0).tool(noting_tool("read").0);
    started(host).await.agent().ask("main", "Begin.").await.unwrap();
    let tools: Vec<_> = below.requests()[0].tools.names().map(ToString::to_string).collect();
    assert_eq!(tools, ["look"]);
    assert!(receipt(&above).starts_with("1 worker(s) succeeded.\n\n## "));
}

#[tokio::test(start_paused = true)]
async fn so_many_run_at_once_and_all_end_with_their_caller() {
    let above = spawner(json!([{"description": "Task 1."}, {"description": "Task 2."}, {"description": "Task 3."}]));
    let below = ScriptedModel::new().hangs().hangs().hangs();
    let models = Models(vec![("Begin.", above), ("Task", below)]);
    let host = AgentHost::in_memory()
        .chat(models)
        .add(Workers::new().with_max_concurrent(2));
    let host = started(host).await;
    let turns = host.parts().get::<dyn TurnRunner>().unwrap();
    let agent = host.agent().clone();
    let query = TurnQuery::default();
    let asking = tokio::spawn(async move { agent.ask("main", "Begin.").await });
    settle().await;
    let live = turns.live(&query);
    let workers: Vec<_> = live.iter().filter(|live| live.request.parent.is_some()).collect();
    assert_eq!(workers.len(), 2);
    let caller = live.iter().find(|live| live.request.parent.is_none()).unwrap();
    turns.cancel(&caller.turn).await.unwrap();
    assert!(asking.await.unwrap().is_err());
    settle().await;
    assert!(turns.is_idle());
}

#[tokio::test]
async fn workers_and_the_call_that_waits_for_them_go_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |above: &ScriptedModel, below: &ScriptedModel| {
        let host = host([("Begin.", above.clone()), ("Count", below.clone())]);
        started(host.data_dir(folder.path())).await
    };
    let above = spawner(json!([{"description": "Count the cats."}]));
    let host = open(&above, &ScriptedModel::new().hangs()).await;
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("main", "Begin.").await });
    while host
        .parts()
        .get::<dyn TurnRunner>()
        .unwrap()
        .live(&TurnQuery::default())
        .len()
        < 2
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    host.shutdown(Duration::from_millis(200)).await;
    drop(host);
    let _ = asking.await.unwrap().unwrap_err();

    let above = ScriptedModel::new().says("done");
    let below = ScriptedModel::new().says("seven cats");
    let host = open(&above, &below).await;
    while !host.parts().get::<dyn TurnRunner>().unwrap().is_idle() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    below.assert_complete();
    assert!(
        receipt(&above).ends_with("[ok] Count the cats.\nseven cats"),
        "{}",
        receipt(&above)
    );
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_and_settings_are_refused_in_words() {
    for (definitions, expected) in [
        (json!([{"description": " "}]), "worker 1: `description` is empty"),
        (json!([{"description": "a", "result_key": "../b"}]), "worker 1: "),
        (json!([]), "`definitions`"),
    ] {
        let above = spawner(definitions);
        let host = started(host([("Begin.", above.clone())])).await;
        host.agent().ask("main", "Begin.").await.unwrap();
        let text = receipt(&above);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn settings_are_read_and_wrong_ones_are_refused() {
    let build = |text: &str| {
        let config = Config::new().with_text("agent.toml", text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let host = AgentHost::configured(&config, folder.path()).unwrap();
        let host = host.chat(ScriptedModel::new()).build();
        host.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(build("[Workers]\nMaxConcurrentWorkers = 5"), Ok(()));
    let none = build("[Workers]\nMaxConcurrentWorkers = 0").unwrap_err();
    assert!(none.contains("`Workers.MaxConcurrentWorkers` is at least 1"), "{none}");
}
