//! Several agents in one host, and several hosts on one journal.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatRequest, ChatResponse, MicroUsd, ModelInfo, ModelTier, ToolCall,
};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{ToolError, ToolFilter, tool};
use rockbot_core::turn::{Budget, InMemoryTurnJournal, RunQuery, TurnJournal, TurnRequest, TurnStatus};
use rockbot_host::{AgentHost, Stores, TurnError};
use serde_json::json;

use crate::support::{Anything, ending, host_of, noting_tool, results, settle, transcript};

/// The names of the tools that a request offers, sorted.
fn tool_names(request: &ChatRequest) -> Vec<String> {
    let mut names: Vec<_> = request
        .tools
        .iter()
        .map(|tool| tool.registration().name.to_string())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn agents_of_a_host_have_their_own_instructions_models_tools_and_conversations() {
    let lead = ScriptedModel::new()
        .says("A text.")
        .with_cost(MicroUsd(2))
        .says("Another.");
    let reviewer = ScriptedModel::new()
        .calls("grade", json!({}))
        .says("Good.")
        .with_cost(MicroUsd(3));
    let host = host_of(&lead)
        .tool(noting_tool("write").0)
        .tool(noting_tool("read").0)
        .agent("reviewer", |agent| {
            agent
                .chat(reviewer.clone())
                .instructions("You review.")
                .tools(ToolFilter::only(["read"]))
                .tool(noting_tool("grade").0)
                .budget(Budget::default().with_max_model_calls(7))
        })
        .build()
        .unwrap();
    let of_reviewer = host.agent_called("reviewer").unwrap();
    host.agent().ask("s", "Write.").await.unwrap();
    assert_eq!(of_reviewer.ask("s", "Review it.").await.unwrap().to_string(), "Good.");
    host.agent().ask("s", "Write more.").await.unwrap();

    assert_eq!(tool_names(&lead.requests()[0]), ["read", "write"]);
    assert_eq!(tool_names(&reviewer.requests()[0]), ["grade", "read"]);
    assert_eq!(
        transcript(&reviewer.requests()[0]),
        ["system: You review.", "user: Review it."]
    );
    let told = transcript(&lead.requests()[1]);
    assert!(!told.iter().any(|message| message.contains("Review")), "{told:?}");
    assert_eq!(of_reviewer.history("s").await.unwrap().len(), 2);
    assert_eq!(of_reviewer.sessions().await.unwrap(), ["s"]);
    assert_eq!(host.agent().history("s").await.unwrap().len(), 4);
    assert_eq!(
        host.spending().total().cost,
        MicroUsd(5),
        "one ledger has the cost of both"
    );

    assert_eq!(host.agent_called("agent").unwrap().history("s").await.unwrap().len(), 4);
    assert!(host.agent_called("editor").is_none());
    let unknown = host
        .agent()
        .run(TurnRequest::new("s", "m", "Hello").with_agent("editor"))
        .await;
    assert!(matches!(unknown, Err(TurnError::UnknownAgent(name)) if name == "editor"));
}

#[tokio::test]
async fn the_same_message_is_another_turn_of_each_agent() {
    let own = ScriptedModel::new().says("mine");
    let other = ScriptedModel::new().says("yours");
    let host = host_of(&own).agent("other", |agent| agent.chat(other)).build().unwrap();
    let message = TurnRequest::new("s", "m", "Whose?");
    assert_eq!(host.agent().run(message.clone()).await.unwrap().text, "mine");
    let of_other = host.agent_called("other").unwrap();
    assert_eq!(of_other.run(message.clone()).await.unwrap().text, "yours");
    assert_eq!(of_other.run(message).await.unwrap().text, "yours", "it came once more");
}

#[tokio::test]
async fn an_agent_is_a_tool_of_another_one_in_its_host() {
    let reviewer = ScriptedModel::new().calls("grade", json!({})).says("Good.");
    let lead = ScriptedModel::new()
        .calls("review", json!({"task": "Is it good?"}))
        .says("It is.");
    let host = host_of(&lead)
        .agent("reviewer", |agent| {
            agent.chat(reviewer.clone()).tool(noting_tool("grade").0)
        })
        .build()
        .unwrap();
    let review = host
        .agent_called("reviewer")
        .unwrap()
        .as_tool("review", "Asks the reviewer.");
    host.add_tool(review.with_tools(ToolFilter::all().without(["review"])))
        .unwrap();
    let outcome = host.agent().ask("s", "Write.").await.unwrap();
    assert_eq!(
        (ending(&outcome), outcome.model_calls),
        ((&TurnStatus::Answered, "It is."), 4)
    );
    assert_eq!(results(&lead.requests()[1]), ["call_1: Good."]);
    assert_eq!(tool_names(&reviewer.requests()[0]), ["grade"]);
}

#[test]
fn names_of_agents_are_checked_when_the_host_is_built() {
    let error = |names: &[&str]| {
        let host = host_of(&ScriptedModel::new());
        let host = names.iter().fold(host, |host, name| host.agent(name, |agent| agent));
        host.build().unwrap_err().to_string()
    };
    assert!(error(&["a", "a"]).contains("two agents of the host are called `a`"));
    assert!(error(&["agent"]).contains("two agents of the host are called `agent`"));
    assert!(error(&["a/b"]).contains("an agent cannot be called `a/b`"));
    assert!(error(&[""]).contains("an agent cannot be called ``"));
}

#[tokio::test]
async fn a_turn_of_an_agent_is_resumed_as_its_own_and_waits_for_an_agent_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let build = |other: Option<&ScriptedModel>| {
        let host = host_of(&ScriptedModel::new()).data_dir(folder.path());
        let host = match other {
            Some(model) => host.agent("other", |agent| {
                agent.chat(model.clone()).tool(mock_tool("slow").0.pure())
            }),
            None => host,
        };
        host.build().unwrap()
    };
    let host = build(Some(&ScriptedModel::new().hangs()));
    let turn = host
        .agent_called("other")
        .unwrap()
        .ask("s", "go")
        .start()
        .await
        .unwrap();
    settle().await;
    let id = turn.id().clone();
    host.shutdown(Duration::ZERO).await;
    drop((host, turn));

    let host = build(None);
    let resumed = host.start().await.unwrap();
    assert_eq!((resumed.running, resumed.parked), (vec![], vec![]));
    host.shutdown(Duration::ZERO).await;
    drop(host);

    let host = build(Some(&ScriptedModel::new().says("Back.")));
    assert_eq!(host.start().await.unwrap().running, std::slice::from_ref(&id));
    assert_eq!(host.agent().outcome(&id).await.unwrap().text, "Back.");
}

/// Adds up what the tool `look` returns for 1 and 2.
#[derive(Debug)]
struct Adds;

#[async_trait]
impl ChatClient for Adds {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let told = transcript(&call.request);
        assert_eq!(told[0], "user: Add.", "it reads its message alone");
        let seen = results(&call.request);
        Ok(match seen.len() {
            n @ 0..2 => ChatResponse::calls([ToolCall::new(format!("step_{n}"), "look", r#"{"n": 7}"#)]),
            // It asked a model for this one.
            _ => ChatResponse::text(seen.join(", ")).with_cost(MicroUsd(4)),
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test]
async fn a_program_uses_tools_as_a_model_does_and_costs_what_it_states() {
    let long = "x".repeat(200_000);
    let look = tool("look", move |_: Anything| {
        let long = long.clone();
        async move { Ok::<_, ToolError>(long) }
    });
    let lead = ScriptedModel::new().calls("add", json!({"task": "Add."})).says("Done.");
    let host = host_of(&lead)
        .tool(look.description("Looks.").own_output())
        .agent("adder", |agent| agent.program(Adds))
        .build()
        .unwrap();
    let adder = host.agent_called("adder").unwrap();
    host.add_tool(adder.as_tool("add", "Adds.").with_tools(ToolFilter::only(["look"])))
        .unwrap();
    let budget = Budget::default().with_max_model_calls(2).with_max_cost(MicroUsd(5));
    let outcome = adder
        .run(TurnRequest::new("s", "m", "Add.").with_budget(budget))
        .await
        .unwrap();
    assert_eq!(outcome.status, TurnStatus::Answered);
    assert_eq!(
        outcome.text.len(),
        2 * (200_000 + "step_0: ".len()) + ", ".len(),
        "it sees its results whole"
    );
    assert_eq!(
        (outcome.model_calls, outcome.spent().cost, outcome.calls.len()),
        (0, MicroUsd(4), 2)
    );
    assert_eq!(
        host.agent().sessions().await.unwrap(),
        [""; 0],
        "no later turn reads its conversation"
    );

    let outcome = host.agent().ask("s", "go").await.unwrap();
    assert_eq!(outcome.model_calls, 2, "those of the lead alone");
}

#[tokio::test]
async fn hosts_of_several_agents_on_one_journal_keep_their_turns_apart() {
    let journal: Arc<dyn TurnJournal> = Arc::new(InMemoryTurnJournal::default());
    let host = |name: &str, model: &ScriptedModel| {
        let stores = Stores::new().with_shared_journal(journal.clone());
        AgentHost::builder(name)
            .chat(model.clone())
            .stores(stores)
            .build()
            .unwrap()
    };
    let message = TurnRequest::new("s", "m", "Whose?");
    let clerk = host("clerk", &ScriptedModel::new().says("the clerk's"));
    let cook = host("cook", &ScriptedModel::new().says("the cook's").hangs());
    assert_eq!(clerk.agent().run(message.clone()).await.unwrap().text, "the clerk's");
    assert_eq!(cook.agent().run(message.clone()).await.unwrap().text, "the cook's");

    let hanging = cook.agent().ask("s", "Once more?").start().await.unwrap();
    settle().await;
    cook.shutdown(Duration::ZERO).await;
    let resumed = clerk.start().await.unwrap();
    assert_eq!(resumed.running, [""; 0], "it is the cook's");
    assert_eq!(
        journal.unfinished(&RunQuery::all().with_agent("clerk")).await.unwrap(),
        [""; 0]
    );
    assert_eq!(
        journal
            .unfinished(&RunQuery::all().with_agent("cook"))
            .await
            .unwrap()
            .len(),
        1
    );
    let again = host("cook", &ScriptedModel::new().says("Late."));
    assert_eq!(again.start().await.unwrap().running, [hanging.id().clone()]);
    assert_eq!(again.agent().outcome(hanging.id()).await.unwrap().text, "Late.");
    assert_eq!(
        again.agent().run(message).await.unwrap().text,
        "the cook's",
        "it came once more"
    );
}

#[tokio::test]
async fn a_turn_that_another_process_works_on_is_cancelled_at_its_next_record() {
    let journal: Arc<dyn TurnJournal> = Arc::new(InMemoryTurnJournal::default());
    let host = |model: &ScriptedModel| {
        let stores = Stores::new().with_shared_journal(journal.clone());
        AgentHost::builder("clerk").chat(model.clone()).stores(stores)
    };
    let (look, mut calls) = mock_tool("look");
    let model = ScriptedModel::new().calls("look", json!({})).says("unheard");
    let working = host(&model).tool(look.pure()).build().unwrap();
    let other = host(&ScriptedModel::new()).build().unwrap();
    let turn = working.agent().ask("s", "go").start().await.unwrap();
    let call = calls.next_call().await;
    other.agent().cancel(turn.id()).await.unwrap();
    call.respond("seen");
    let outcome = working.agent().outcome(turn.id()).await.unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    let ended = other.agent().cancel(turn.id()).await;
    assert!(matches!(ended, Err(TurnError::NotFound(_))), "{ended:?}");
}
