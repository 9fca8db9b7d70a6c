//! A server in this process, in raw JSON-RPC, so that it can break every rule.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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

/// The form of the protocol that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// The one of 2026, without sessions.
    Today,
    /// An older one with a handshake, in this version.
    Session(&'static str),
    /// An older one whose server does not answer what it does not know.
    SilentSession,
    /// An older one whose server answers what it does not know with nothing.
    EmptySession,
    /// An older one whose server ends at a question that it does not know.
    EndingSession,
    /// An older one, in this version, which its server names in answer to the question of today.
    NamedSession(&'static str),
    /// One that is newer than any that this client knows.
    Newer,
}

impl Default for Era {
    fn default() -> Self {
        Self::Session("2025-06-18")
    }
}

#[derive(Default)]
struct State {
    era: Era,
    /// The call that waits for the client's answer to a request.
    waiting: Mutex<Option<Value>>,
    tools: Mutex<Vec<Value>>,
    /// The requests and notifications that came, by method.
    seen: Mutex<Vec<Value>>,
    connections: AtomicU32,
    is_silent: bool,
    /// Time that each connection needs until its first answer.
    start: Duration,
    pages: u32,
    /// `true` if each page of the list has one tool.
    is_paged: bool,
    /// The page of the list that fails, from 1 on.
    failing: AtomicU32,
    /// The number of subscriptions that are refused.
    cuts: AtomicU32,
    /// `true` if lists are not answered any more.
    hangs: AtomicBool,
    /// The words of the server about itself, in place of "Echoes texts.".
    instructions: Mutex<Option<String>>,
    /// The connection in which nothing is answered any more, from 1 on.
    frozen: AtomicU32,
    ignores_pings: AtomicBool,
}

impl Peer {
    pub(super) fn new(name: &'static str, tools: &[&str]) -> Self {
        Self::of_era(name, Era::default(), tools)
    }

    /// Creates a server that speaks one form of the protocol.
    pub(super) fn of_era(name: &'static str, era: Era, tools: &[&str]) -> Self {
        let state = State {
            tools: Mutex::new(tools.iter().map(|tool| described(tool)).collect()),
            pages: 1,
            era,
            ..State::default()
        };
        Self {
            name,
            state: Arc::new(state),
        }
    }

    /// Creates a server that reads its first message after `start`, as a container or a JVM does.
    pub(super) fn starting(name: &'static str, era: Era, start: Duration) -> Self {
        let state = State {
            tools: Mutex::new(vec![described("echo")]),
            pages: 1,
            start,
            era,
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

    /// Creates a server whose list of tools has a page for each.
    pub(super) fn with_pages(name: &'static str, era: Era, tools: &[&str]) -> Self {
        let state = State {
            tools: Mutex::new(tools.iter().map(|tool| described(tool)).collect()),
            is_paged: true,
            era,
            ..State::default()
        };
        Self {
            name,
            state: Arc::new(state),
        }
    }

    /// Lets this page of the list fail from now on; zero lets none fail.
    pub(super) fn fail_page(&self, page: usize) {
        self.state.failing.store(u32::try_from(page).unwrap(), Ordering::SeqCst);
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

    /// Refuses the next subscription.
    pub(super) fn cut(&self) {
        self.state.cuts.store(1, Ordering::SeqCst);
    }

    /// Answers no further list.
    pub(super) fn hang(&self) {
        self.state.hangs.store(true, Ordering::SeqCst);
    }

    /// Answers nothing more over the present connection.
    pub(super) fn freeze(&self) {
        self.state.frozen.store(self.connections(), Ordering::SeqCst);
    }

    /// Answers nothing more over any later connection.
    pub(super) fn stop_answering(&self) {
        self.state.frozen.store(self.connections() + 1, Ordering::SeqCst);
    }

    /// Answers no pings.
    pub(super) fn ignore_pings(&self) {
        self.state.ignores_pings.store(true, Ordering::SeqCst);
    }

    pub(super) fn connections(&self) -> u32 {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub(super) fn set_tools(&self, tools: Vec<Value>) {
        *self.state.tools.lock().unwrap() = tools;
    }

    pub(super) fn set_instructions(&self, text: &str) {
        *self.state.instructions.lock().unwrap() = Some(text.to_owned());
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
    tokio::time::sleep(state.start).await;
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        state.seen.lock().unwrap().push(message.clone());
        let is_frozen = state.frozen.load(Ordering::SeqCst) == state.connections.load(Ordering::SeqCst);
        if state.is_silent || is_frozen {
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
        "server/discover" if state.era == Era::EndingSession => return None,
        "server/discover" | "initialize" => match begin(message, state.era) {
            Some(mut reply) => {
                if let (Some(result), Some(text)) = (reply.get_mut("result"), &*state.instructions.lock().unwrap()) {
                    result["instructions"] = json!(text);
                }
                reply
            }
            None => return Some(()),
        },
        "subscriptions/listen" if state.cuts.load(Ordering::SeqCst) > 0 => {
            state.cuts.fetch_sub(1, Ordering::SeqCst);
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "cut"}})
        }
        "tools/list" if state.hangs.load(Ordering::SeqCst) => return Some(()),
        "subscriptions/listen" => {
            let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
            let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
            json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        }
        "ping" if !state.ignores_pings.load(Ordering::SeqCst) => result(json!({})),
        "" => return answered(message, state, write).await,
        "tools/list" => {
            let page: u32 = message["params"]["cursor"]
                .as_str()
                .map_or(0, |cursor| cursor.parse().unwrap_or(0));
            let mut tools = state.tools.lock().unwrap().clone();
            let mut pages = state.pages;
            if state.is_paged {
                pages = u32::try_from(tools.len()).unwrap();
                tools = vec![tools[page as usize].clone()];
            }
            let mut list = json!({"tools": tools});
            if page + 1 == state.failing.load(Ordering::SeqCst) {
                let error = json!({"code": -32603, "message": "the shelf is empty"});
                send(write, &json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
                return Some(());
            }
            if page + 1 < pages {
                list["nextCursor"] = json!((page + 1).to_string());
            }
            if state.era == Era::Today {
                (list["ttlMs"], list["cacheScope"], list["resultType"]) =
                    (json!(0), json!("private"), json!("complete"));
            }
            result(list)
        }
        "tools/call" => return call(message, state, write).await,
        _ => return Some(()),
    };
    send(write, &reply).await;
    Some(())
}

/// Returns the answer to the first message of a client, or `None` if it is ignored.
fn begin(message: &Value, era: Era) -> Option<Value> {
    let id = &message["id"];
    let error = |code: i32, data: Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "not this way", "data": data}});
    let capabilities = json!({"tools": {"listChanged": true}});
    let info = json!({"name": "peer", "version": "1"});
    let result = match (message["method"].as_str()?, era) {
        (_, Era::Newer) => {
            let data = json!({"supported": ["2099-01-01"], "requested": "2026-07-28"});
            return Some(error(-32022, data));
        }
        ("server/discover", Era::Today | Era::NamedSession(_)) => {
            let version = if let Era::NamedSession(version) = era {
                version
            } else {
                "2026-07-28"
            };
            json!({"resultType": "complete", "supportedVersions": [version], "capabilities": capabilities, "ttlMs": 0,
                "cacheScope": "private", "instructions": "Echoes texts.",
                "_meta": {"io.modelcontextprotocol/serverInfo": info}})
        }
        ("server/discover", Era::SilentSession) => return None,
        ("server/discover", Era::EmptySession) => json!({}),
        ("server/discover", Era::Session(_)) | (_, Era::Today) => return Some(error(-32601, Value::Null)),
        (_, Era::Session(_) | Era::NamedSession(_) | Era::SilentSession | Era::EmptySession | Era::EndingSession) => {
            let version = if let Era::Session(version) | Era::NamedSession(version) = era {
                version
            } else {
                "2025-11-25"
            };
            json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": info,
                "instructions": "Echoes texts."})
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Ends the call that waited for the answer of the client, with this answer as its text.
async fn answered(message: &Value, state: &State, write: &mut Writer) -> Option<()> {
    let id = state.waiting.lock().unwrap().take();
    if let Some(id) = id {
        let answer = message.get("result").unwrap_or(&message["error"]);
        let result = json!({"content": [{"type": "text", "text": answer.to_string()}]});
        send(write, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }
    Some(())
}

/// Asks the client for something, in the way of the era, and ends the call with its answer.
async fn ask(message: &Value, method: &str, state: &State, write: &mut Writer) {
    let id = &message["id"];
    let params = &message["params"];
    let request = json!({"method": method, "params": params["arguments"]["params"]});
    if state.era != Era::Today {
        *state.waiting.lock().unwrap() = Some(id.clone());
        let mut request = request;
        (request["jsonrpc"], request["id"]) = (json!("2.0"), json!("ask"));
        return send(write, &request).await;
    }
    let result = match params.get("inputResponses") {
        Some(answers) => {
            assert_eq!(params["requestState"], "opaque");
            json!({"resultType": "complete", "content": [{"type": "text", "text": answers["ask"].to_string()}]})
        }
        None => json!({"resultType": "input_required", "inputRequests": {"ask": request}, "requestState": "opaque"}),
    };
    send(write, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
}

/// Does what the tool's name says.
async fn call(message: &Value, state: &State, write: &mut Writer) -> Option<()> {
    let id = &message["id"];
    let params = &message["params"];
    let text = params["arguments"]["text"].as_str().unwrap_or("nothing");
    let result = json!({"content": [{"type": "text", "text": text}]});
    let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
    match params["name"].as_str()? {
        "hang" => {}
        "huge" => {
            let result = json!({"content": [{"type": "text", "text": "x".repeat(9 << 20)}]});
            send(write, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
        }
        "elicit" => ask(message, "elicitation/create", state, write).await,
        "sample" => ask(message, "sampling/createMessage", state, write).await,
        "roots" => ask(message, "roots/list", state, write).await,
        "again" => {
            let result = json!({"resultType": "input_required", "requestState": "opaque"});
            send(write, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
        }
        "die" => return None,
        "die_once" if state.connections.load(Ordering::SeqCst) == 1 => return None,
        // Answered after the next call, which comes when this one is given up.
        "late" => *state.waiting.lock().unwrap() = Some(reply),
        "echo" if state.waiting.lock().unwrap().is_some() => {
            let late = state.waiting.lock().unwrap().take();
            send(write, &late.unwrap_or_default()).await;
            send(write, &reply).await;
        }
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
        "parts" => {
            let content = json!([
                {"type": "text", "text": "one"}, {"type": "hologram", "beam": "x"}, {"type": "image", "mimeType": "image/png"},
                {"text": "?"}, {"type": "text", "text": "two"},
            ]);
            let mut result = json!({"content": content, "isError": true});
            if state.era == Era::Today {
                result["resultType"] = json!("complete");
            }
            send(write, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
        }
        "fail" => {
            let failed = json!({"content": [{"type": "text", "text": "no such file"}], "isError": true});
            send(write, &json!({"jsonrpc": "2.0", "id": id, "result": failed})).await;
        }
        _ => send(write, &reply).await,
    }
    Some(())
}
