//! The same work with rockbot: the turn engine, its journal on disk, typed tools, the
//! OpenAI-compatible client.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use rockbot_core::store::{ConversationMemory, ConversationTurn, InMemoryWorkingMemory, StoreError};
use rockbot_core::tool::tool;
use rockbot_core::turn::TurnProgress;
use rockbot_core::{Principal, Secret, SessionId};
use rockbot_host::behavior::{ModelBehavior, ModelBehaviors};
use rockbot_host::turn::Nudges;
use rockbot_host::{Agent, AgentHost, AgentHostBuilder, Briefing, Stores, TurnPolicies};
use rockbot_llm::{KeywordTierSelector, Meter, ModelGateway, OpenAiChat, PermitLimits};

use crate::{Args, description, instructions, whole, work};

/// Number of tool calls that have run.
pub static TOOL_RUNS: AtomicUsize = AtomicUsize::new(0);

/// A conversation memory that keeps nothing: this workload is about the loop.
#[derive(Debug)]
struct NoMemory;

#[async_trait]
impl ConversationMemory for NoMemory {
    async fn append(&self, _: &Principal, _: &SessionId, _: Vec<ConversationTurn>) -> Result<(), StoreError> {
        Ok(())
    }
    async fn recent(&self, _: &Principal, _: &SessionId, _: usize) -> Result<Vec<ConversationTurn>, StoreError> {
        Ok(Vec::new())
    }
    async fn clear(&self, _: &Principal, _: &SessionId) -> Result<(), StoreError> {
        Ok(())
    }
    async fn sessions(&self, _: &Principal) -> Result<Vec<SessionId>, StoreError> {
        Ok(Vec::new())
    }
}

/// The parts of a benched host besides the loop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras {
    /// Every loop policy, evaluation and follow-up excepted: briefing, all nudges, model behaviors, a
    /// tier selector, working memory for large results and its two tools. None of them fires.
    pub policies: bool,
    /// The stock gateway, with enough permits that no call waits.
    pub gateway: bool,
    /// All memory and feedback parts, in files: see [`whole`]. The files must exist.
    pub whole: bool,
}

/// Creates a host that asks the server at `base`, has `tools` tools, and keeps its journal below
/// `data`, or in memory when `IN_MEMORY` is set in the environment.
pub fn host(base: &str, tools: usize, data: &Path, extras: Extras) -> AgentHost {
    let builder = builder(tools, data, extras);
    let builder = if extras.gateway {
        builder.chat(gateway(client(base)))
    } else {
        builder.chat(client(base))
    };
    builder.build().expect("the host is complete")
}

/// Creates the client of the model server at `base`.
pub fn client(base: &str) -> OpenAiChat {
    OpenAiChat::builder(base, "mock-1")
        .api_key(Secret::from("test"))
        .build()
        .expect("the endpoint is a URL")
}

/// Creates the builder of a host without a model.
pub fn builder(tools: usize, data: &Path, extras: Extras) -> AgentHostBuilder {
    let mut builder = AgentHost::builder("bench");
    builder = if extras.whole {
        whole::add(builder, data)
    } else {
        builder
            .instructions(instructions())
            .stores(Stores::new().with_conversation_memory(NoMemory))
    };
    if extras.policies {
        builder = with_policies(builder);
    }
    if std::env::var_os("IN_MEMORY").is_none() {
        builder = builder.data_dir(data);
    }
    let tools = (0..tools).map(|index| {
        let run = |args: Args| async move {
            TOOL_RUNS.fetch_add(1, Ordering::Relaxed);
            work(&args)
        };
        tool(&format!("tool_{index}"), run)
            .pure()
            .description(description(index))
    });
    tools.fold(builder, |builder, tool| builder.tool(tool))
}

fn gateway(chat: OpenAiChat) -> ModelGateway {
    let limits = PermitLimits::default()
        .with_low(1_000)
        .with_balanced(1_000)
        .with_high(1_000);
    ModelGateway::builder(chat)
        .default_layers(limits, Meter::default())
        .build()
}

fn with_policies(builder: AgentHostBuilder) -> AgentHostBuilder {
    let nudges = Nudges::default()
        .with_on_unfinished_set_up(true)
        .with_on_hallucinated_calls(true)
        .with_on_leaked_syntax(true)
        .with_on_unexpected_cjk(true)
        .with_on_tool_failure_giveup(true)
        .with_on_repeated_calls(true);
    builder
        .briefing(Briefing::full())
        .policies(TurnPolicies::new().with_nudges(nudges))
        .tier_selector(KeywordTierSelector::default())
        .policies(
            TurnPolicies::new().with_model_behaviors(ModelBehaviors::new().with("mock", ModelBehavior::default())),
        )
        .stores(Stores::new().with_working_memory(InMemoryWorkingMemory::new()))
}

/// Asks the agent one message, and returns its last answer.
pub async fn answer(agent: &Agent, session: String, message: &str, stream: bool) -> String {
    if !stream {
        return agent.ask(session, message).await.expect("an answer").text;
    }
    let mut turn = agent.stream(session, message);
    let mut text = String::new();
    while let Some(progress) = turn.next().await {
        match progress.expect("progress") {
            TurnProgress::Delta(delta) => text.push_str(&delta),
            TurnProgress::Final(outcome) => assert_eq!(outcome.text, text, "the pieces make the answer"),
            _ => {}
        }
    }
    text
}
