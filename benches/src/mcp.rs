//! An agent's part with MCP servers and nothing else: for the drivers that measure calls, tool
//! views and searches.

use std::sync::Arc;

use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Parts, Running, Subsystem};
use rockbot_core::tool::{InMemoryToolRegistry, Tool, ToolRegistry};
use rockbot_core::{AgentIdentity, BoxError, SystemClock};
use rockbot_mcp::{McpServerState, McpServers, McpTools};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

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
    let verb = VERBS[index % VERBS.len()];
    let thing = THINGS[index / VERBS.len() % THINGS.len()];
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
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut out = tokio::io::stdout();
    while let Some(line) = lines.next_line().await? {
        if let Some(answer) = answer(&serde_json::from_str(&line)?, tools) {
            out.write_all(format!("{answer}\n").as_bytes()).await?;
            out.flush().await?;
        }
    }
    Ok(())
}

/// Serves one tool over HTTP at an address that it prints first, until standard input ends.
///
/// # Errors
///
/// Returns an error if it cannot listen.
pub async fn serve_http() -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let serving = async {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // A client that is gone ends it.
                let _ = serve_connection(stream).await;
            });
        }
    };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    tokio::select! {
        () = serving => {}
        _ = lines.next_line() => {}
    }
    Ok(())
}

async fn serve_connection(stream: TcpStream) -> Result<(), BoxError> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        while stream.read_line(&mut line).await? > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (status, body) = match answer(&message, 1) {
            Some(answer) => ("200 OK", answer.to_string()),
            None if message.is_null() => ("405 Method Not Allowed", String::new()),
            None => ("202 Accepted", String::new()),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
    }
}

/// Returns the answer to a message of a client, if it needs one.
fn answer(message: &Value, tools: usize) -> Option<Value> {
    let mut answer = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"}}}),
        "tools/list" => json!({"result": {"tools": (0..tools).map(definition).collect::<Vec<_>>()}}),
        "tools/call" => {
            let text = &message["params"]["arguments"]["id"];
            json!({"result": {"content": [{"type": "text", "text": text}]}})
        }
        "server/discover" => json!({"error": {"code": -32601, "message": "unknown"}}),
        _ => return None,
    };
    (answer["jsonrpc"], answer["id"]) = (json!("2.0"), message["id"].clone());
    Some(answer)
}
