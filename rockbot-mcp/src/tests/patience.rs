//! Servers that need long until their first answer, such as a container, a JVM or a program that
//! is downloaded first.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::peer::{Era, Peer};
use super::{Host, tools_of};
use crate::{McpServer, McpServerState, McpTools};

const ERAS: [Era; 4] = [
    Era::Today,
    Era::Session("2025-06-18"),
    Era::SilentSession,
    Era::EmptySession,
];

#[tokio::test(start_paused = true)]
async fn a_server_that_needs_long_is_started_once_and_connected_when_it_answers() {
    for seconds in [9, 11, 12, 20, 59] {
        for era in ERAS {
            let start = Duration::from_secs(seconds);
            let peer = Peer::starting("s", era, start);
            let began = Instant::now();
            let host = Host::start(tools_of(&[&peer])).await;
            assert_eq!(
                host.servers.list()[0].state,
                McpServerState::Connected,
                "{era:?} {seconds}"
            );
            let said = host.call("s__echo", json!({"text": "hi"})).await.unwrap();
            assert_eq!(said.content.as_text(), Some("hi"), "{era:?} {seconds}");
            assert_eq!(peer.connections(), 1, "{era:?} {seconds}");
            let until = if era == Era::SilentSession {
                start.max(Duration::from_secs(10))
            } else {
                start
            };
            assert_eq!(began.elapsed().as_secs(), until.as_secs(), "{era:?} {seconds}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_patience_is_a_setting() {
    let peer = Peer::starting("s", Era::default(), Duration::from_secs(90));
    let host = Host::start(tools_of(&[&peer])).await;
    assert_eq!(
        host.servers.list()[0].state,
        McpServerState::Failed("no answer within 60s".to_owned())
    );
    let peer = Peer::starting("s", Era::default(), Duration::from_secs(90));
    let tools = tools_of(&[&peer]).connect_timeout(Duration::from_secs(100));
    let host = Host::start(tools).await;
    assert_eq!(host.servers.list()[0].state, McpServerState::Connected);
    assert_eq!(peer.connections(), 1);
}

/// A server that says nothing until it has both questions, and answers the older one last.
const LATE: &str = r#"
id() { printf '%s' "$1" | sed 's/.*"id":\([0-9]*\),.*/\1/'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$(id "$1")" "$2"; }
read -r discover
read -r initialize
answer "$discover" '"error":{"code":-32601,"message":"Method not found"}'
answer "$initialize" '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"late","version":"1"}}'
while read -r line; do
  case "$line" in
    *tools/list*) answer "$line" '"result":{"tools":[{"name":"pid","inputSchema":{"type":"object"}}]}' ;;
    *tools/call*) answer "$line" "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}" ;;
  esac
done
"#;

#[cfg(unix)]
#[tokio::test]
async fn a_process_that_answers_late_is_asked_both_ways_and_not_started_again() {
    let started = tempfile::NamedTempFile::new().unwrap();
    let path = started.path().display().to_string();
    let script = format!("echo $$ >> {path}\n{LATE}");
    let tools = McpTools::default()
        .server(McpServer::process("late", "sh").args(["-c", &script]))
        .connect_timeout(Duration::from_secs(6));
    let host = Host::start(tools).await;
    assert_eq!(
        host.servers.list()[0].state,
        McpServerState::Connected,
        "{:?}",
        host.servers
    );
    let said = host.call("late__pid", json!({})).await.unwrap().content.into_words();
    assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), said, "one process");
    host.running.stop().await;
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "takes 20 seconds: run it by hand after a change of the handshake"]
async fn processes_that_sleep_12_and_20_seconds_are_connected() {
    let slow = |name: &str, seconds: u32| {
        let script = format!("sleep {seconds}\n{LATE}");
        McpServer::process(name, "sh").args(["-c".to_owned(), script])
    };
    let tools = McpTools::default().server(slow("a", 12)).server(slow("b", 20));
    let host = Host::start(tools).await;
    for server in host.servers.list() {
        assert_eq!(server.state, McpServerState::Connected, "{}", server.name);
    }
    host.running.stop().await;
}
