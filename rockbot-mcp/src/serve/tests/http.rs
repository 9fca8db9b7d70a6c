//! Tests of who may connect over HTTP.

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
use rockbot_core::{AgentIdentity, SystemClock};
use serde_json::json;

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

#[tokio::test]
async fn the_sessions_of_clients_are_bounded() {
    let host = Host::start(anywhere(), Vec::new()).await;
    let url = host.url();
    for _ in 0..256 {
        assert_eq!(status(&url, None).await, StatusCode::OK);
    }
    assert_eq!(status(&url, None).await, StatusCode::SERVICE_UNAVAILABLE);
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
