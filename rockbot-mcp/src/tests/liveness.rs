//! Servers that hang, crash or go away: a call is told at once what is known, and a server that
//! hangs is started again.

use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::tool::{ToolErrorCode, ToolExecutor as _, ToolInvokeRequest, ToolRegistry as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::peer::{Era, Peer};
use super::{Host, tools_of, until};
use crate::{McpServer, McpServerState, McpTools};

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_while_it_is_idle_is_started_again() {
    for era in [Era::Today, Era::default()] {
        let peer = Peer::of_era("s", era, &["echo"]);
        let host = Host::start(tools_of(&[&peer]).ping_timeout(Duration::from_secs(5))).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(peer.connections(), 1, "one that answers stays");
        peer.freeze();
        let began = Instant::now();
        until(|| peer.connections() == 2).await;
        assert!(began.elapsed().as_secs() < 70, "{era:?} {:?}", began.elapsed());
        let said = host.call("s__echo", json!({"text": "again"})).await.unwrap();
        assert_eq!(said.content.as_text(), Some("again"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_a_call_is_pinged_and_started_again() {
    for ignores_pings in [false, true] {
        let peer = Peer::new("s", &["echo", "hang"]);
        if ignores_pings {
            peer.ignore_pings();
        }
        let server = peer.server().time_limit(Duration::from_secs(10));
        let tools = McpTools::default().server(server).ping_timeout(Duration::from_secs(5));
        let host = Host::start(tools).await;
        // The call alone hangs.
        host.call("s__hang", json!({})).await.unwrap_err();
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(peer.connections(), 1, "{ignores_pings}");
        peer.freeze();
        let error = host.call("s__echo", json!({})).await.unwrap_err();
        assert_eq!(error.code(), ToolErrorCode::OutcomeUnknown);
        until(|| peer.connections() == 2).await;
        assert!(host.call("s__echo", json!({})).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_over_a_connection_that_hangs_ends_with_it() {
    let peer = Peer::new("s", &["echo", "hang"]);
    let server = peer.server().time_limit(Duration::from_secs(20));
    let tools = McpTools::default().server(server).ping_timeout(Duration::from_secs(5));
    let host = Host::start(tools).await;
    let first = host.call("s__hang", json!({}));
    let second = async {
        tokio::time::sleep(Duration::from_secs(15)).await;
        peer.freeze();
        let began = Instant::now();
        let error = host.call("s__hang", json!({})).await.unwrap_err();
        (began.elapsed().as_secs(), error.message().to_owned())
    };
    let (_, (seconds, told)) = tokio::join!(first, second);
    assert_eq!(
        told,
        "the connection to the MCP server `s` was lost during the call: it did not answer a ping within 5s; it may or may \
         not have taken effect, so check before you try it again"
    );
    assert_eq!(seconds, 10);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_ends_its_call_at_once() {
    let peer = Peer::new("s", &["huge", "echo"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let began = Instant::now();
    let error = host.call("s__huge", json!({})).await.unwrap_err();
    assert_eq!(
        (error.code(), error.message(), error.retry_helps()),
        (
            ToolErrorCode::OutcomeUnknown,
            "the answer of the MCP server `s` was dropped: it is longer than 8 MiB; ask for less; it may or may not have \
             taken effect, so check before you try it again",
            false
        )
    );
    assert_eq!(began.elapsed().as_secs(), 0);
    assert!(host.call("s__echo", json!({})).await.is_ok());
    assert_eq!(peer.connections(), 1);
}

/// Calls a tool on behalf of a caller that has `time`.
async fn call_within(host: &Host, tool: &str, time: Duration) -> (ToolErrorCode, String) {
    let snapshot = host.registry.snapshot();
    let executor = snapshot.find(tool).unwrap().executor().clone();
    let cx = CallContext::new("s").with_deadline(Instant::now() + time);
    let error = executor
        .execute(ToolInvokeRequest::new("1", tool, "{}"), &cx)
        .await
        .unwrap_err();
    (error.code(), error.message().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_with_the_time_of_its_caller() {
    let peer = Peer::new("s", &["hang", "echo"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let began = Instant::now();
    let ended = call_within(&host, "s__hang", Duration::from_secs(3)).await;
    let unknown = "the caller's time was over before the MCP server `s` answered; it may or may not have taken effect, so \
                   check before you try it again";
    assert_eq!(ended, (ToolErrorCode::OutcomeUnknown, unknown.to_owned()));
    assert_eq!(began.elapsed().as_secs(), 3);
    host.call("s__echo", json!({})).await.unwrap();
    assert_eq!(peer.seen("notifications/cancelled").len(), 1);

    let calls = peer.seen("tools/call").len();
    let (code, text) = call_within(&host, "s__echo", Duration::ZERO).await;
    assert_eq!(code, ToolErrorCode::ExecutionFailed);
    assert_eq!(
        text,
        "the call was not sent to the MCP server `s`: no time was left for it. Nothing was called"
    );
    assert_eq!(peer.seen("tools/call").len(), calls);
}

#[tokio::test(start_paused = true)]
async fn a_caller_waits_for_a_connection_no_longer_than_it_has_time() {
    let peer = Peer::new("s", &["echo", "die"]);
    let host = Host::start(tools_of(&[&peer])).await;
    peer.stop_answering();
    host.call("s__die", json!({})).await.unwrap_err();
    let began = Instant::now();
    let (code, text) = call_within(&host, "s__echo", Duration::from_secs(2)).await;
    assert_eq!(code, ToolErrorCode::ExecutionFailed);
    assert!(text.ends_with("Nothing was called"), "{text}");
    assert_eq!(began.elapsed().as_secs(), 2);
}

/// Serves an MCP server over HTTP until `stop` is dropped, and returns its address.
async fn serve_http(stop: tokio::sync::oneshot::Receiver<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let serving = async {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 16 * 1024];
                let mut length = 0;
                let body = loop {
                    length += stream.read(&mut request[length..]).await.unwrap();
                    let text = String::from_utf8_lossy(&request[..length]).into_owned();
                    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
                    if let Some(body) = body.filter(|body| text.starts_with("GET") || !body.is_empty()) {
                        break body;
                    }
                };
                let body: Value = serde_json::from_str(&body).unwrap_or_default();
                let result = match body["method"].as_str().unwrap_or_default() {
                    "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "web", "version": "1"}}),
                    "tools/list" => json!({"tools": [super::peer::described("pay")]}),
                    "server/discover" => Value::Null,
                    _ => json!({}),
                };
                let mut answer = json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
                if result.is_null() {
                    answer = json!({"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32601, "message": "no"}});
                }
                let text = answer.to_string();
                let status = if body["id"].is_null() { "202 Accepted" } else { "200 OK" };
                let text = if body["id"].is_null() { String::new() } else { text };
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    text.len()
                );
                let _ = stream.write_all(format!("{head}{text}").as_bytes()).await;
            }
        };
        tokio::select! {
            _ = stop => {}
            () = serving => {}
        }
    });
    format!("http://{address}/mcp")
}

#[tokio::test]
async fn a_call_that_was_not_sent_may_be_tried_again() {
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let url = serve_http(stopped).await;
    let tools = McpTools::default().server(McpServer::http("web", &url).unwrap());
    let host = Host::start(tools).await;
    assert_eq!(
        host.servers.list()[0].state,
        McpServerState::Connected,
        "{:?}",
        host.servers
    );
    drop(stop);
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    while tokio::net::TcpStream::connect(&address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let error = host.call("web__pay", json!({})).await.unwrap_err();
    assert_eq!(
        (error.code(), error.retry_helps()),
        (ToolErrorCode::ExecutionFailed, true)
    );
    assert!(error.message().contains("Nothing was called"), "{error}");
}

#[cfg(unix)]
mod processes {
    use super::*;

    const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\),.*/\1/')" "$1"; }
while read -r line; do
  case "$line" in
    *server/discover*) answer '"error":{"code":-32601,"message":"Method not found"}' ;;
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *tools/list*) answer '"result":{"tools":[{"name":"crash","inputSchema":{"type":"object"}}]}' ;;
    *tools/call*) echo "the disk is full" >&2; exit 3 ;;
    *ping*) answer '"result":{}' ;;
  esac
done
"#;

    fn shell(script: &str) -> McpTools {
        McpTools::default().server(McpServer::process("s", "sh").args(["-c", script]))
    }

    #[tokio::test]
    async fn a_crash_during_a_call_is_told_with_its_last_words() {
        let host = Host::start(shell(SERVER)).await;
        for _ in 0..2 {
            let error = host.call("s__crash", json!({})).await.unwrap_err();
            assert_eq!(
                (error.code(), error.message()),
                (
                    ToolErrorCode::OutcomeUnknown,
                    "the connection to the MCP server `s` was lost during the call: its process ended (exit status: 3); it \
                     wrote: the disk is full; it may or may not have taken effect, so check before you try it again"
                )
            );
        }
        host.running.stop().await;
    }

    #[tokio::test]
    async fn a_crash_at_the_start_is_told_with_its_last_words() {
        let host = Host::start(shell("echo 'KEY is missing' >&2; exit 1")).await;
        let reason =
            "the server ended during the handshake; its process ended (exit status: 1); it wrote: KEY is missing";
        assert_eq!(host.servers.list()[0].state, McpServerState::Failed(reason.to_owned()));
        host.running.stop().await;
    }
}
