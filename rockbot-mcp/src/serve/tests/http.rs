//! Tests of who may connect over HTTP.

use std::sync::Arc;

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
use rockbot_core::tool::{ToolState, stateful_tool};
use rockbot_core::{AgentIdentity, SystemClock};
use serde_json::{Value, json};

use super::{Host, anywhere};
use crate::McpToolServer;

/// Sends the first request of a client, with a header besides, and returns the status.
async fn status(url: &str, header: Option<(reqwest::header::HeaderName, &str)>) -> StatusCode {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let request = reqwest::Client::builder().no_proxy().build().unwrap().post(url);
    let request = request
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream");
    let request = match header {
        Some((name, value)) => request.header(name, value),
        None => request,
    };
    request.body(body.to_string()).send().await.unwrap().status()
}

#[tokio::test]
async fn names_and_pages_of_this_machine_alone_are_accepted() {
    let host = Host::start(anywhere(), Vec::new()).await;
    let url = host.url();
    for (header, expected) in [
        (None, StatusCode::OK),
        (Some((HOST, "localhost:1")), StatusCode::OK),
        (Some((HOST, "evil.test")), StatusCode::FORBIDDEN),
        (Some((ORIGIN, "http://localhost:3000")), StatusCode::OK),
        (Some((ORIGIN, "https://evil.test")), StatusCode::FORBIDDEN),
    ] {
        assert_eq!(status(&url, header.clone()).await, expected, "{header:?}");
    }
    assert_eq!(status(&url.replace("/mcp", "/"), None).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_operator_s_names_are_accepted_too() {
    let server = anywhere()
        .allow_host("tools.example")
        .allow_origin("https://app.example:443");
    let host = Host::start(server, Vec::new()).await;
    let url = host.url();
    assert_eq!(status(&url, Some((HOST, "tools.example"))).await, StatusCode::OK);
    assert_eq!(
        status(&url, Some((ORIGIN, "https://app.example"))).await,
        StatusCode::OK
    );
    let host = Host::start(anywhere().allow_host("*"), Vec::new()).await;
    assert_eq!(status(&host.url(), Some((HOST, "any.test"))).await, StatusCode::OK);
}

#[tokio::test]
async fn a_token_is_asked_for_and_compared() {
    let host = Host::start(anywhere().token("sesame".to_owned()), Vec::new()).await;
    let url = host.url();
    for (header, expected) in [
        (None, StatusCode::UNAUTHORIZED),
        (Some((AUTHORIZATION, "Bearer sesam")), StatusCode::UNAUTHORIZED),
        (Some((AUTHORIZATION, "Basic sesame")), StatusCode::UNAUTHORIZED),
        (Some((AUTHORIZATION, "bearer sesame")), StatusCode::OK),
    ] {
        assert_eq!(status(&url, header.clone()).await, expected, "{header:?}");
    }
}

/// A client of raw requests from one address of this machine.
struct Raw {
    http: reqwest::Client,
    url: String,
}

impl Raw {
    fn at(host: &Host, address: [u8; 4]) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .local_address(std::net::IpAddr::from(address));
        Self {
            http: http.build().unwrap(),
            url: host.url(),
        }
    }

    /// Sends a message, in a session if there is one.
    async fn send(&self, session: Option<&str>, body: &Value) -> reqwest::Response {
        let request = self
            .http
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        let request = match session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        };
        request.body(body.to_string()).send().await.unwrap()
    }

    /// Begins a session, and returns its id.
    async fn begin(&self) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }});
        let answer = self.send(None, &body).await;
        assert_eq!(answer.status(), StatusCode::OK);
        answer.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    /// Lists the tools in a session, and returns the status.
    async fn list(&self, session: &str) -> StatusCode {
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        self.send(Some(session), &list).await.status()
    }
}

#[tokio::test]
async fn a_client_that_begins_session_after_session_locks_out_no_other() {
    let host = Host::start(anywhere(), Vec::new()).await;
    let hasty = Raw::at(&host, [127, 0, 0, 1]);
    let other = Raw::at(&host, [127, 0, 0, 2]);
    let used = hasty.begin().await;
    let elsewhere = other.begin().await;
    assert_eq!(hasty.list(&used).await, StatusCode::OK);
    let first = hasty.begin().await;
    for _ in 0..300 {
        hasty.begin().await;
    }
    // The sessions that were used last stay, and those of another address.
    assert_eq!(hasty.list(&used).await, StatusCode::OK);
    assert_eq!(other.list(&elsewhere).await, StatusCode::OK);
    assert_eq!(hasty.list(&first).await, StatusCode::NOT_FOUND, "it gave way");
    let client = host.client().await;
    assert!(client.list_all_tools().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_client_that_holds_connection_after_connection_locks_out_no_other() {
    let host = Host::start(anywhere(), Vec::new()).await;
    let address = host.endpoint.address().unwrap();
    let mut held = Vec::new();
    for _ in 0..300 {
        held.push(tokio::net::TcpStream::connect(address).await.unwrap());
    }
    let client = tokio::time::timeout(std::time::Duration::from_secs(5), host.client()).await;
    assert!(client.is_ok(), "the connection of a further client is served at once");
    drop(held);
}

/// Waits until the test lets it go on.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wait {}

#[tokio::test]
async fn a_request_id_that_is_in_use_is_refused_and_the_first_call_answered() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let wait = stateful_tool(
        "wait",
        gate.clone(),
        |gate: ToolState<Arc<tokio::sync::Semaphore>>, _: Wait| async move {
            gate.acquire().await.unwrap().forget();
            "done"
        },
    );
    let host = Host::start(anywhere(), vec![wait]).await;
    let raw = Raw::at(&host, [127, 0, 0, 1]);
    let session = raw.begin().await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
    let send = || async { raw.send(Some(&session), &call).await.text().await.unwrap() };
    let first = send();
    tokio::pin!(first);
    tokio::select! {
        biased;
        text = &mut first => panic!("it waits: {text}"),
        () = async { while host.tools.seen.lock().unwrap().is_empty() { tokio::task::yield_now().await } } => {}
    }
    for _ in 0..20 {
        let second = send().await;
        assert!(second.contains("the request id 7 is in use"), "{second}");
        assert!(second.contains("-32600") && second.contains("\"id\":7"), "{second}");
    }
    assert_eq!(host.tools.seen.lock().unwrap().len(), 1);
    gate.add_permits(1);
    assert!(first.await.contains("done"));
    // It is free again.
    gate.add_permits(1);
    assert!(send().await.contains("done"));
}

fn declared(mut server: McpToolServer, settings: &str) -> Result<(), String> {
    let mut parts = Parts::new(AgentIdentity::new("workshop"), std::sync::Arc::new(SystemClock), None);
    parts.provide(std::sync::Arc::new(
        Config::new().with_text("a.toml", settings).unwrap(),
    ));
    server
        .declare(&mut Declarations::new(parts))
        .map_err(|error| error.to_string())
}

#[test]
fn what_cannot_be_served_says_what_to_set() {
    let error = |server, settings| declared(server, settings).unwrap_err();
    let nowhere = error(McpToolServer::new().tools(["*"]), "");
    assert!(nowhere.contains("set `McpServer.Address`"), "{nowhere}");
    let nothing = error(McpToolServer::new().stdio(), "");
    assert!(nothing.contains("set `McpServer.Tools`"), "{nothing}");
    let open = "[McpServer]\nAddress = \"0.0.0.0:1\"\nTools = [\"*\"]";
    let open = error(McpToolServer::new(), open);
    assert!(open.contains("set a `Token`, or listen at 127.0.0.1"), "{open}");
    let wrong = error(McpToolServer::new(), "[McpServer]\nAddress = \"here\"");
    assert!(wrong.contains("an address with a port"), "{wrong}");
    let fine = "[McpServer]\nAddress = \"0.0.0.0:1\"\nTools = [\"*\"]\nToken = \"sesame\"";
    assert_eq!(declared(McpToolServer::new(), fine), Ok(()));
}

#[tokio::test]
async fn an_address_in_use_is_an_error_of_the_start() {
    let first = Host::start(anywhere(), Vec::new()).await;
    let taken = McpToolServer::new()
        .listen(first.endpoint.address().unwrap())
        .tools(["*"]);
    let error = Host::try_start(taken, Vec::new()).await.err().unwrap().to_string();
    assert!(error.starts_with("cannot listen at 127.0.0.1:"), "{error}");
}

#[test]
fn a_server_that_the_settings_turn_off_serves_nowhere() {
    assert!(declared(McpToolServer::new(), "[McpServer]\nTools = \"*\"").is_err());
    let off = "[McpServer]\nEnabled = false\nTools = \"*\"";
    assert_eq!(declared(McpToolServer::new(), off), Ok(()));
}
