//! An agent's part with MCP servers and nothing else: for the drivers that measure calls, tool views and searches.

use std::sync::Arc;

use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Parts, Running, Subsystem};
use rockbot_core::tool::{InMemoryToolRegistry, Tool, ToolRegistry};
use rockbot_core::{AgentIdentity, BoxError, SystemClock};
use rockbot_mcp::{McpServerState, McpServers, McpTools};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// The connected servers of a host.
pub struct Connected {
    /// Registry with the tools of the servers.
    pub registry: Arc<dyn ToolRegistry>,
    /// Tools about the servers themselves.
    pub managing: Vec<Tool>,
    /// Handle whose drop ends the servers.
    pub running: Box<dyn Running>,
}

/// Connects the servers of `tools`, and waits until all are connected.
///
/// # Errors
///
/// Returns an error if one cannot be connected.
pub async fn connect(mut tools: McpTools) -> Result<Connected, BoxError> {
    let registry: Arc<dyn ToolRegistry> = Arc::new(InMemoryToolRegistry::new());
    let mut parts = Parts::new(AgentIdentity::new("bench"), Arc::new(SystemClock), None);
    parts.provide(Arc::new(Config::new()));
    parts.provide::<dyn ToolRegistry>(registry.clone());
    let mut declarations = Declarations::new(parts);
    tools.declare(&mut declarations)?;
    let declared = declarations.merge();
    let servers = declared.parts.require::<McpServers>()?;
    let running = Subsystem::start(Box::new(tools), &declared.parts).await?;
    servers.settled().await;
    match servers
        .list()
        .into_iter()
        .find(|server| server.state != McpServerState::Connected)
    {
        Some(failed) => Err(format!("{}: {:?}", failed.name, failed.state).into()),
        None => Ok(Connected {
            registry,
            managing: declared.tools,
            running,
        }),
    }
}

/// Words of the names of tools.
const VERBS: [&str; 10] = [
    "create", "find", "send", "list", "delete", "update", "read", "export", "merge", "check",
];
const THINGS: [&str; 10] = [
    "invoice",
    "calendar event",
    "mail",
    "customer",
    "order",
    "file",
    "ticket",
    "report",
    "contract",
    "payment",
];

/// Returns the definition of a tool of the server that [`serve`] runs.
pub fn definition(index: usize) -> Value {
    let (verb, thing) = (VERBS[index % VERBS.len()], THINGS[index / VERBS.len() % THINGS.len()]);
    json!({
        "name": format!("{verb}_{}_{index}", thing.replace(' ', "_")),
        "description": format!("Can {verb} one {thing} of department {}, with all that belongs to it.", index / 100),
        "inputSchema": {"type": "object", "required": ["id"], "properties": {
            "id": {"type": "string", "description": "The id of the thing."},
            "note": {"type": "string", "description": "A note for the log."},
        }},
    })
}

/// Serves `tools` tools over standard input and output until the input ends.
///
/// # Errors
///
/// Returns an error if a line is no message, or the output is closed.
pub async fn serve(tools: usize) -> Result<(), BoxError> {
    let (mut lines, mut out) = (BufReader::new(tokio::io::stdin()).lines(), tokio::io::stdout());
    while let Some(line) = lines.next_line().await? {
        let message: Value = serde_json::from_str(&line)?;
        let answer = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"}}}),
            "tools/list" => json!({"result": {"tools": (0..tools).map(definition).collect::<Vec<_>>()}}),
            "server/discover" => json!({"error": {"code": -32601, "message": "unknown"}}),
            _ => continue,
        };
        let mut answer = answer;
        (answer["jsonrpc"], answer["id"]) = (json!("2.0"), message["id"].clone());
        out.write_all(format!("{answer}\n").as_bytes()).await?;
        out.flush().await?;
    }
    Ok(())
}
