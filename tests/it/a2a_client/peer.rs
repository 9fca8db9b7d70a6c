//! An agent that a test plays, over a real connection: it serves a card, answers operations as the
//! test says, and keeps what it got.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Got {
    pub(super) head: String,
    pub(super) body: String,
}

impl Got {
    /// Returns the operation: the method of JSON-RPC, else that of HTTP with its path.
    pub(super) fn operation(&self) -> String {
        match self.json()["method"].as_str() {
            Some(method) => method.to_owned(),
            None => self.head.split(" HTTP").next().unwrap().to_owned(),
        }
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .head
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':').unwrap().1.trim())
    }
}

/// An answer of an agent.
#[derive(Debug, Clone)]
pub(super) enum Said {
    /// Status, further header lines, and body.
    Page(u16, &'static str, String),
    /// The events of a stream, which then ends.
    Events(Vec<String>),
    /// The events of a stream, which is kept open by comments then.
    Open(Vec<String>),
    /// An event that is sent again and again.
    Endless(String),
    /// The connection ends without an answer.
    Dies,
    /// The connection stays open without an answer.
    Silence,
}

impl Said {
    pub(super) fn json(value: &Value) -> Self {
        Self::Page(200, "Content-Type: application/json\r\n", value.to_string())
    }

    /// A result of JSON-RPC.
    pub(super) fn result(result: &Value) -> Self {
        Self::json(&rpc(result))
    }

    /// The results of a stream of JSON-RPC.
    pub(super) fn events(results: &[Value]) -> Self {
        Self::Events(results.iter().map(|result| rpc(result).to_string()).collect())
    }

    pub(super) fn error(code: i64, message: &str) -> Self {
        Self::json(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}}))
    }
}

pub(super) fn rpc(result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": result})
}

/// The agent. It lives as long as this value.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    task: JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Peer {
    /// Starts an agent that answers each request by `answer`, with its own URL at hand.
    pub(super) async fn start(answer: impl Fn(&Got, &str) -> Said + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}");
        let got = Arc::<Mutex<Vec<Got>>>::default();
        let kept = got.clone();
        let answer = Arc::new(answer);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = answer.clone();
                let kept = kept.clone();
                let url = url.clone();
                tokio::spawn(async move {
                    let mut stream = stream;
                    let Some(request) = read(&mut stream).await else { return };
                    kept.lock().unwrap().push(request.clone());
                    write(&mut stream, answer(&request, &url)).await;
                });
            }
        });
        Self { address, got, task }
    }

    /// Starts an agent of JSON-RPC 1.0 with this name, whose operations are answered by `answer`.
    pub(super) async fn speaking(streams: bool, answer: impl Fn(&str, &Value) -> Said + Send + Sync + 'static) -> Self {
        Self::start(move |got, url| {
            if got.head.contains("/.well-known/agent-card.json") {
                return Said::json(&card(url, "JSONRPC", "1.0", streams));
            }
            answer(&got.operation(), &got.json()["params"])
        })
        .await
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// Returns the operations that were asked for, without the card.
    pub(super) fn operations(&self) -> Vec<String> {
        let got = self.got();
        let operations = got.iter().map(Got::operation);
        operations
            .filter(|operation| !operation.contains("agent-card"))
            .collect()
    }
}

/// Returns the card of an agent that is spoken to at `url`.
pub(super) fn card(url: &str, binding: &str, version: &str, streams: bool) -> Value {
    json!({
        "name": "Far Agent", "description": "Finds things.", "version": "1",
        "supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": version}],
        "capabilities": {"streaming": streams}, "defaultInputModes": [], "defaultOutputModes": [],
        "skills": [{"id": "find", "name": "Find", "description": "Finds.", "tags": []}],
    })
}

/// A task of an agent in a state, with words and an artifact.
pub(super) fn task(state: &str, said: &str, made: &str) -> Value {
    let mut task = json!({"id": "t-1", "contextId": "c-1", "status": {"state": state}});
    if !said.is_empty() {
        task["status"]["message"] = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": said}]});
    }
    if !made.is_empty() {
        task["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": made}]}]);
    }
    task
}

async fn read(stream: &mut TcpStream) -> Option<Got> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let got = Got {
            head: head.to_owned(),
            body: body.to_owned(),
        };
        let length = got.header("content-length").map_or(0, |length| length.parse().unwrap());
        if body.len() >= length {
            return Some(got);
        }
    }
}

async fn write(stream: &mut TcpStream, said: Said) {
    let begin = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n";
    match said {
        Said::Page(status, headers, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n");
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
        Said::Events(events) => {
            let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            let _ = stream.write_all(format!("{begin}{events}").as_bytes()).await;
        }
        Said::Open(events) => {
            let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            let mut piece = format!("{begin}{events}");
            while stream.write_all(piece.as_bytes()).await.is_ok() {
                piece = ": ping\n\n".to_owned();
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
        Said::Endless(event) => {
            let _ = stream.write_all(begin.as_bytes()).await;
            let event = format!("data: {event}\n\n");
            while stream.write_all(event.as_bytes()).await.is_ok() {
                tokio::task::yield_now().await;
            }
        }
        Said::Dies => {}
        Said::Silence => std::future::pending().await,
    }
}
