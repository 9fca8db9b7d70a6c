//! The commands that show the parts of the agent: memories, rules, agents, MCP servers, costs.

use std::sync::Arc;

use rockbot::implement::store::MemoryQuery;
use rockbot::prelude::*;
use rockbot::service::AgentDirectory;
use rockbot::store::{LongTermMemory, MemoryEntry, RulesStore};

use super::terminal::{clean, costs, cut};

/// Maximum number of entries of a list.
const MAX_SHOWN: usize = 20;

/// Lists the memories that have these words, else the newest.
pub(crate) async fn memories(host: &AgentHost, words: &str) -> Result<String, BoxError> {
    let memory = host.parts().get::<dyn LongTermMemory>();
    let memory = memory.ok_or("this agent has no long-term memory")?;
    let principal = host.agent().principal();
    let query = MemoryQuery::new(words).with_limit(MAX_SHOWN);
    let line = |entry: &Arc<MemoryEntry>| format!("{}  {}", entry.id, cut(&entry.content));
    let lines: Vec<_> = if words.is_empty() {
        let mut entries = memory.list(principal).await?;
        entries.retain(|entry| entry.archived_at.is_none());
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.created_at));
        entries.iter().take(MAX_SHOWN).map(line).collect()
    } else {
        let found = memory.search(principal, &query).await?;
        found.iter().map(|found| line(&found.item)).collect()
    };
    Ok(listed(&lines, "there is no such memory"))
}

/// Lists the rules of the user.
pub(crate) async fn rules(host: &AgentHost) -> Result<String, BoxError> {
    let rules = host.parts().get::<dyn RulesStore>();
    let rules = rules.ok_or("this agent keeps no rules")?;
    let rules = rules.list(host.agent().principal()).await?;
    let lines: Vec<_> = rules.iter().map(|rule| clean(rule.as_str())).collect();
    Ok(listed(&lines, "there is no rule yet"))
}

/// Lists the agents that tasks can be handed to.
pub(crate) fn agents(host: &AgentHost) -> String {
    let agents = host.parts().get::<dyn AgentDirectory>();
    let agents = agents.map(|directory| directory.agents()).unwrap_or_default();
    let line = |agent: &rockbot::service::AgentCard| {
        let description = agent.description.as_deref().unwrap_or_default();
        format!("{}: {}", clean(&agent.agent_name), cut(description))
    };
    listed(
        &agents.iter().map(line).collect::<Vec<_>>(),
        "this agent knows no other agent; --agents names some",
    )
}

/// Lists the MCP servers with their states.
#[cfg(feature = "mcp")]
pub(crate) fn servers(host: &AgentHost) -> String {
    use rockbot::mcp::{McpServerState, McpServers};

    let servers = host.parts().get::<McpServers>().map(|servers| servers.list());
    let lines = servers.unwrap_or_default().into_iter().map(|server| {
        let state = match server.state {
            McpServerState::Connected => format!("{} tools", server.tools.len()),
            McpServerState::Failed(reason) => format!("not connected: {}", cut(&reason)),
            _ => "connecting".to_owned(),
        };
        let held = match server.held.len() {
            0 => String::new(),
            held => format!(", {held} held until /accept {}", server.name),
        };
        format!("{}: {state}{held}", server.name)
    });
    listed(
        &lines.collect::<Vec<_>>(),
        "there is no MCP server; --mcp names a file of some",
    )
}

/// Says that this chat was built without MCP.
#[cfg(not(feature = "mcp"))]
pub(crate) fn servers(_: &AgentHost) -> String {
    "this chat was built without the feature `mcp`".to_owned()
}

/// Tells the costs of the turns of this run: of the session, and of all.
pub(crate) fn spending(host: &AgentHost, session: &SessionId) -> String {
    let ledger = host.spending();
    let of_session = ledger.of_session(host.agent().principal(), session);
    format!(
        "this conversation: {}\nthis run: {}",
        costs(&of_session),
        costs(&ledger.total())
    )
}

fn listed(lines: &[String], empty: &str) -> String {
    if lines.is_empty() {
        empty.to_owned()
    } else {
        lines.join("\n")
    }
}
