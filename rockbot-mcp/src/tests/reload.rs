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
