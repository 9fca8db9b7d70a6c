//! Servers over HTTP that do not behave.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::Host;
use crate::{McpServer, McpServerState, McpTools};

/// Serves one answer to each request of a method, and returns the address. The task ends with the
/// test's runtime.
async fn serve(get: String, post: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let get = get.clone();
            let post = post.clone();
            tokio::spawn(async move {
                let mut request = [0; 8192];
                let read = stream.read(&mut request).await.unwrap_or(0);
                let answer = if request[..read].starts_with(b"GET") { get } else { post };
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    format!("http://{address}/mcp")
}

fn response(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// Returns the reason why a server that answers so is not connected.
async fn reason(get: String, post: String) -> String {
    let url = serve(get, post).await;
    let server = McpServer::http("web", &url)
        .unwrap()
        .header("Authorization", "Bearer sesame");
    let tools = McpTools::default()
        .server(server)
        .connect_timeout(Duration::from_secs(20));
    let host = Host::start(tools).await;
    let McpServerState::Failed(reason) = host.servers.list()[0].state.clone() else {
        panic!("{:?}", host.servers);
    };
    assert!(!reason.contains("sesame"), "{reason}");
    reason
}

#[tokio::test]
async fn a_page_of_a_proxy_is_no_server() {
    let page = || response("404 Not Found", "text/html", "<h1>404\u{1b}[31m</h1>");
    let reason = reason(page(), page()).await;
    assert!(reason.contains("404") && !reason.contains('\u{1b}'), "{reason}");
}

#[tokio::test]
async fn a_server_that_wants_a_key_says_so() {
    let denied = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer resource_metadata=\"http://127.0.0.1:1/x\"\r\n\
                  content-length: 0\r\nconnection: close\r\n\r\n";
    let reason = reason(denied.to_owned(), denied.to_owned()).await;
    assert_eq!(
        reason,
        "the server asks for authorization: set its header `Authorization`"
    );
}

#[tokio::test]
async fn keys_go_to_no_other_origin() {
    let other = serve(String::new(), String::new()).await;
    let moved = format!("HTTP/1.1 307 Moved\r\nlocation: {other}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let told = reason(moved.clone(), moved).await;
    assert!(told.contains("307"), "{told}");

    let stream = response(
        "200 OK",
        "text/event-stream",
        "event: endpoint\ndata: http://evil.test/post\n\n",
    );
    let url = serve(stream, response("404 Not Found", "text/plain", "")).await;
    let list = format!(r#"{{"mcpServers": {{"old": {{"type": "sse", "url": "{url}"}}}}}}"#);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mcp.json"), list).unwrap();
    let host = Host::start(McpTools::from_file(folder.path().join("mcp.json"))).await;
    let state = host.servers.list()[0].state.clone();
    let expected = "the server names an address at another origin for requests";
    assert_eq!(state, McpServerState::Failed(expected.to_owned()));
}

#[tokio::test]
async fn a_key_in_the_url_is_shown_nowhere() {
    // Nothing listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let server = McpServer::http("web", &format!("http://{address}/sesame/mcp?key=sesame")).unwrap();
    let host = Host::start(McpTools::default().server(server)).await;
    let McpServerState::Failed(reason) = host.servers.list()[0].state.clone() else {
        panic!("{:?}", host.servers);
    };
    assert!(
        reason.contains(&address.to_string()) && !reason.contains("sesame"),
        "{reason}"
    );
    let listed = host.manage("mcp_list_services", serde_json::json!({})).await.unwrap();
    assert!(!listed.contains("sesame"), "{listed}");
}
