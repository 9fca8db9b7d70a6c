//! An agent for other agents, by the A2A protocol over HTTP: its card, a task as raw requests, and
//! the same task by another agent.
//!
//! `cargo run --example a2a_http --features a2a,a2a-server`. The answers are rehearsed, so that it runs without a model. With
//! `--serve 127.0.0.1:8940` it serves until Ctrl-C, any client of A2A may call it with the bearer token `sesame`.

use std::io::{Write as _, stdout};
use std::net::SocketAddr;
use std::time::Duration;

use rockbot::chat::{ChatCall, ChatError, ModelInfo, Role, ToolCall};
use rockbot::prelude::*;
use rockbot::tools::a2a::{A2aCaller as AgentCaller, RemoteAgent};
use rockbot::tools::a2a_server::{A2aCaller, A2aEndpoint, A2aServer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A stand-in for a model: it looks a title up and tells what it found.
#[derive(Debug)]
struct Rehearsed;

#[async_trait]
impl ChatClient for Rehearsed {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let last = call.request.messages.last();
        let said = last.map(|message| message.text()).unwrap_or_default();
        Ok(match last.filter(|message| message.role == Role::Tool) {
            Some(found) if found.text().starts_with("The agent `librarian`") => {
                ChatResponse::text("I have asked the librarian.")
            }
            // A model would put the answer into words of its own.
            None if said.contains("The agent `librarian`") => {
                let answer = said.find("On the shelves").map_or("", |at| &said[at..]);
                let answer = answer.lines().next().unwrap_or_default();
                ChatResponse::text(format!("The librarian says: {answer}"))
            }
            None if said.starts_with("Please") => {
                let task = json!({"agent_name": "librarian", "skill": "work", "message": "Do you have Emma?"});
                ChatResponse::calls([ToolCall::new("1", "invoke_agent", task.to_string())])
            }
            Some(found) => ChatResponse::text(format!("On the shelves: {}.", found.text())),
            None => {
                let look = ToolCall::new("1", "find_book", json!({"title": "Emma"}).to_string());
                ChatResponse::calls([look])
            }
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Finds a book in the library.
#[derive(Deserialize, JsonSchema)]
struct FindBook {
    /// Its title, or a part of it.
    title: String,
}

fn host(address: &str) -> Result<AgentHost, BoxError> {
    let find = tool("find_book", |find: FindBook| async move {
        format!("{} by Jane Austen", find.title)
    });
    let server = A2aServer::new()
        .listen(address)
        .description("Knows the books of the library.")
        // Another agent is a principal of its own, and may use what is named here.
        .caller(A2aCaller::new("partner", "sesame".to_owned()).tools(["find_book"]));
    Ok(AgentHost::builder("librarian")
        .chat(Rehearsed)
        .tool(find)
        .add(server)
        .build()?)
}

/// Lets an agent of another host ask the librarian, and returns what it says of the answer.
async fn asked(address: SocketAddr) -> Result<String, BoxError> {
    let librarian = RemoteAgent::new(format!("http://{address}"))
        .named("librarian")
        .key("sesame".to_owned());
    let host = AgentHost::builder("assistant")
        .chat(Rehearsed)
        .add(AgentCaller::new().agent_at(librarian))
        .build()?;
    host.start().await?;
    let agent = host.agent();
    let mut announcements = agent.announcements();
    let mut said = agent.ask("main", "Please find Emma.").await?.text;
    // An answer that comes at once joins the turn that asked; a later one has a turn of its own.
    while !said.starts_with("The librarian says") {
        let next = announcements.next().await.ok_or("the assistant has ended")?;
        said = next.content.words().into_owned();
    }
    host.shutdown(Duration::from_secs(5)).await;
    Ok(said)
}

/// Sends a request and returns the JSON of the answer.
async fn request(address: SocketAddr, head: &str, body: &str) -> Result<Value, BoxError> {
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nAuthorization: Bearer sesame\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("the answer has no body")?;
    Ok(serde_json::from_str(body)?)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut words = std::env::args().skip(1);
    let served = match words.next().as_deref() {
        Some("--serve") => Some(
            words
                .next()
                .ok_or("`--serve` needs an address, such as 127.0.0.1:8940")?,
        ),
        _ => None,
    };
    let host = host(served.as_deref().unwrap_or("127.0.0.1:0"))?;
    host.start().await?;
    let address = host
        .parts()
        .require::<A2aEndpoint>()?
        .address()
        .ok_or("the server does not listen")?;
    let mut out = stdout();
    if served.is_some() {
        writeln!(out, "serving at http://{address}/")?;
        tokio::signal::ctrl_c().await?;
    } else {
        let card = request(address, "GET /.well-known/agent-card.json", "").await?;
        writeln!(out, "{}: {}", card["name"], card["description"])?;
        let sent = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "Do you have Emma?"}]}},
        });
        let task = &request(address, "POST /", &sent.to_string()).await?["result"]["task"];
        writeln!(out, "{}", task["status"]["state"])?;
        writeln!(out, "{}", task["artifacts"][0]["parts"][0]["text"])?;
        writeln!(out, "{}", asked(address).await?)?;
    }
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
