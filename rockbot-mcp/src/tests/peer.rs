//! A server in this process, in raw JSON-RPC, so that it can break every rule.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, split};

use crate::McpServer;
use crate::server::Endpoint;

/// A server whose tools are named after what their calls do.
#[derive(Clone)]
pub(super) struct Peer {
    name: &'static str,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    tools: Mutex<Vec<Value>>,
    /// The requests and notifications that came, by method.
    seen: Mutex<Vec<Value>>,
    connections: AtomicU32,
    is_silent: bool,
    pages: u32,
}

impl Peer {
    pub(super) fn new(name: &'static str, tools: &[&str]) -> Self {
        let state = State {
            tools: Mutex::new(tools.iter().map(|tool| described(tool)).collect()),
            pages: 1,
            ..State::default()
        };
        Self {
            name,
            state: Arc::new(state),
        }
    }

    /// Creates a server that never answers.
    pub(super) fn silent(name: &'static str) -> Self {
        let state = State {
            is_silent: true,
            ..State::default()
        };
        Self {
            name,
            state: Arc::new(state),
        }
    }

    /// Creates a server whose list of tools has this many pages, each with the same tools.
    pub(super) fn paging(name: &'static str, pages: u32) -> Self {
        let state = State {
            tools: Mutex::new(vec![described("echo")]),
            pages,
            ..State::default()
        };
        Self {
            name,
            state: Arc::new(state),
        }
    }

    pub(super) fn server(&self) -> McpServer {
        let state = self.state.clone();
        let open = move || {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            state.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(theirs, state.clone()));
            ours
        };
        McpServer::of(self.name.to_owned(), Endpoint::Pipe(Arc::new(open)))
    }

    pub(super) fn connections(&self) -> u32 {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub(super) fn set_tools(&self, tools: Vec<Value>) {
        *self.state.tools.lock().unwrap() = tools;
    }

    /// Returns the parameters of the messages of a method that came.
    pub(super) fn seen(&self, method: &str) -> Vec<Value> {
        let seen = self.state.seen.lock().unwrap();
        let of_method = seen.iter().filter(|message| message["method"] == method);
        of_method.map(|message| message["params"].clone()).collect()
    }
}

/// Returns the definition of a tool that takes a text.
pub(super) fn described(name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": schema})
}

type Writer = WriteHalf<DuplexStream>;

async fn serve(stream: DuplexStream, state: Arc<State>) {
    let (read, mut write): (ReadHalf<_>, _) = split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        state.seen.lock().unwrap().push(message.clone());
        if state.is_silent {
            continue;
        }
        if answer(&message, &state, &mut write).await.is_none() {
            return;
        }
    }
}

async fn send(write: &mut Writer, message: &Value) {
    // The other side may be gone.
    let _ = write.write_all(format!("{message}\n").as_bytes()).await;
}

/// Answers a message. Returns `None` if the connection is to end.
async fn answer(message: &Value, state: &State, write: &mut Writer) -> Option<()> {
    let id = &message["id"];
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    // An answer to a message of this server has no method.
    let reply = match message["method"].as_str().unwrap_or_default() {
        "server/discover" => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "method not found"}})
        }
        "initialize" => result(json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "peer", "version": "1"}, "instructions": "Echoes texts.",
        })),
        "tools/list" => {
            let page: u32 = message["params"]["cursor"]
                .as_str()
                .map_or(0, |cursor| cursor.parse().unwrap_or(0));
            let mut list = json!({"tools": *state.tools.lock().unwrap()});
            if page + 1 < state.pages {
                list["nextCursor"] = json!((page + 1).to_string());
            }
            result(list)
        }
        "tools/call" => return call(message, state, write).await,
        _ => return Some(()),
    };
    send(write, &reply).await;
    Some(())
}

/// Does what the tool's name says.
async fn call(message: &Value, state: &State, write: &mut Writer) -> Option<()> {
    let (id, params) = (&message["id"], &message["params"]);
    let text = params["arguments"]["text"].as_str().unwrap_or("nothing");
    let result = json!({"content": [{"type": "text", "text": text}]});
    let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
    match params["name"].as_str()? {
        "hang" => {}
        "die" => return None,
        "die_once" if state.connections.load(Ordering::SeqCst) == 1 => return None,
        "twice" => {
            send(write, &reply).await;
            send(write, &reply).await;
        }
        "wrong_id" => send(write, &json!({"jsonrpc": "2.0", "id": 4711, "result": result})).await,
        "string_id" => {
            send(
                write,
                &json!({"jsonrpc": "2.0", "id": id.to_string(), "result": result}),
            )
            .await
        }
        "nonsense" => {
            let _ = write.write_all(b"\xff\xfe{not json}\n[1,2]\n{\"a\":1}\n").await;
            send(write, &reply).await;
        }
        "long_line" => {
            for _ in 0..10 {
                let _ = write.write_all(&vec![b'x'; 1 << 20]).await;
            }
            let _ = write.write_all(b"\n").await;
            send(write, &reply).await;
        }
        "flood" => {
            let log =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
            for _ in 0..2_000 {
                for message in [&log, &changed, &ping] {
                    send(write, message).await;
                }
            }
            send(write, &reply).await;
        }
        "change" => {
            state.tools.lock().unwrap().push(described("added"));
            send(
                write,
                &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
            )
            .await;
            send(write, &reply).await;
        }
        "refuse" => {
            let error = json!({"code": -32602, "message": "Unknown tool: refuse\u{1b}[31m"});
            send(write, &json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
        }
        "fail" => {
            let failed = json!({"content": [{"type": "text", "text": "no such file"}], "isError": true});
            send(write, &json!({"jsonrpc": "2.0", "id": id, "result": failed})).await;
        }
        _ => send(write, &reply).await,
    }
    Some(())
}
