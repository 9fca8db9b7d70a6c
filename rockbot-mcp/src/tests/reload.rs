//! A file of servers that changes while the host runs.

use std::time::Duration;

use super::Host;
use crate::{McpServerState, McpTools};

/// Programs that do not exist: what matters is which servers there are.
fn document(servers: &[&str]) -> String {
    let entries: Vec<_> = servers
        .iter()
        .map(|name| format!(r#""{name}": {{"command": "/nowhere/{name}"}}"#))
        .collect();
    format!(r#"{{"mcpServers": {{{}}}}}"#, entries.join(", "))
}

async fn until_servers(host: &Host, wanted: &[&str]) {
    let reached = async {
        while host
            .servers
            .list()
            .iter()
            .map(|server| server.name.as_str())
            .ne(wanted.iter().copied())
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let reached = tokio::time::timeout(Duration::from_secs(600), reached).await;
    assert!(reached.is_ok(), "{:?}", host.servers.list());
}

#[tokio::test(start_paused = true)]
async fn changes_are_applied_by_difference_and_a_bad_edit_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, document(&["a", "b"])).unwrap();
    let code = crate::McpServer::process("code", "/nowhere/code");
    let host = Host::start(McpTools::from_file(&file).server(code)).await;
    assert_eq!(host.servers.list().len(), 3);
    assert!(
        host.servers
            .list()
            .iter()
            .all(|server| matches!(server.state, McpServerState::Failed(_)))
    );

    std::fs::write(&file, document(&["b", "c"])).unwrap();
    until_servers(&host, &["b", "c", "code"]).await;
    let half = &document(&["a"])[..20];
    std::fs::write(&file, half).unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    until_servers(&host, &["b", "c", "code"]).await;
    std::fs::write(&file, document(&["d", "code"])).unwrap();
    until_servers(&host, &["code", "d"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_is_not_ready_while_an_entry_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    let bad = document(&["a", "b"]).replacen(r#""/nowhere/b""#, r#""/nowhere/b", "deniedTool": ["pay"]"#, 1);
    std::fs::write(&file, &bad).unwrap();
    let host = Host::start(McpTools::from_file(&file)).await;
    until_servers(&host, &["a"]).await;
    let problem = "MCP server `b` is not used: `deniedTool` is not a member of a server; did you mean `deniedTools`?";
    assert_eq!(host.running.check().unwrap_err(), problem);
    assert_eq!(host.servers.problems()[0].to_string(), problem);

    std::fs::write(&file, document(&["a", "b"])).unwrap();
    until_servers(&host, &["a", "b"]).await;
    assert_eq!(host.running.check(), Ok(()));
    std::fs::write(&file, &bad).unwrap();
    until_servers(&host, &["a"]).await;
    assert_eq!(host.running.check().unwrap_err(), problem);
}

#[tokio::test(start_paused = true)]
async fn one_bad_entry_among_good_ones_and_a_file_that_changes_all_the_time_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, document(&["a"])).unwrap();
    let host = Host::start(McpTools::from_file(&file)).await;
    let bad = document(&["a", "b", "c", "d"]).replacen(r#"{"command": "/nowhere/b"}"#, r#"{"command": ["b"]}"#, 1);
    std::fs::write(&file, bad).unwrap();
    until_servers(&host, &["a", "c", "d"]).await;
    for change in 0..500 {
        std::fs::write(&file, document(&[&format!("s{change}")])).unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until_servers(&host, &["s499"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_server_that_is_removed_ends_with_an_error() {
    let peer = super::peer::Peer::new("s", &["hang"]);
    let host = Host::start(super::tools_of(&[&peer])).await;
    let runtime = host.servers.runtime().unwrap();
    let removing = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        runtime.bridge.remove("s");
    };
    let began = tokio::time::Instant::now();
    let (result, ()) = tokio::join!(host.call("s__hang", serde_json::json!({})), removing);
    let error = result.unwrap_err();
    assert!(error.message().contains("was lost during the call"), "{error}");
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "it does not wait for the time limit"
    );
    assert!(host.tools().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_of_the_file_takes_the_place_of_one_that_a_model_registered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, document(&["a"])).unwrap();
    let host = Host::start(McpTools::from_file(&file)).await;
    let model_s = crate::McpServer::process("github", "/nowhere/else");
    let runtime = host.servers.runtime().unwrap();
    assert!(runtime.connect(model_s, crate::service::Origin::Model));
    std::fs::write(&file, document(&["a", "GitHub"])).unwrap();
    until_servers(&host, &["a", "GitHub"]).await;
    let service = runtime.bridge.find("github").unwrap();
    assert_eq!(service.origin, crate::service::Origin::File);
}
