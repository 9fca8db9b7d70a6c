//! The index of servers: its order, its event, and which programs come into it.

use std::sync::Arc;

use rockbot_core::files::DataFolder;
use rockbot_core::tool::ToolRegistry as _;
use serde_json::{Value, json};

use super::peer::{Peer, described};
use super::{Host, tools_of};
use crate::pins::Pins;
use crate::{McpExposure, McpServer, McpServersIndexed, McpTools};

#[tokio::test(start_paused = true)]
async fn tools_stand_in_the_order_of_the_configuration_however_slow_a_server_is() {
    let slow = Peer::of_era("z", super::peer::Era::SilentSession, &["one", "two"]);
    let quick = Peer::new("a", &["one"]);
    let tools = tools_of(&[&slow, &quick]).exposure(McpExposure::Eager).max_tools(2);
    let host = Host::begin(tools).await;
    host.until_tools(&["a__one"]).await;
    let own = rockbot_core::tool::Owner::new("own");
    host.registry
        .register(&own, rockbot_core::testing::mock_tool("own").0)
        .unwrap();
    host.until_tools(&["z__one", "z__two", "a__one", "own"]).await;
    let snapshot = host.registry.snapshot();
    let shown = snapshot.entries().iter().filter(|entry| entry.exposure().is_always());
    let shown: Vec<_> = shown.map(|entry| entry.registration().name.to_string()).collect();
    assert_eq!(shown, ["z__one", "z__two", "own"], "the first server is shown first");
}

#[tokio::test(start_paused = true)]
async fn each_change_of_the_index_is_an_event() {
    let mail = Peer::new("mail", &["change"]);
    let files = Peer::new("files", &["die"]);
    let host = Host::begin(tools_of(&[&mail, &files])).await;
    let mut events = host.servers.subscribe();
    let summary = |name: &str, tools: &[&str]| json!({"serverName": name, "summary": "Echoes texts.", "toolCount": tools.len(), "toolNames": tools});
    let next = async |events: &mut tokio::sync::broadcast::Receiver<McpServersIndexed>| -> Value {
        let mut event = serde_json::to_value(events.recv().await.unwrap()).unwrap();
        for server in event["servers"].as_array_mut().unwrap() {
            let fingerprint = server.as_object_mut().unwrap().remove("fingerprint").unwrap();
            assert_eq!(fingerprint.as_str().unwrap().len(), 64);
        }
        event
    };
    let servers = json!([summary("files", &["die"]), summary("mail", &["change"])]);
    assert_eq!(
        next(&mut events).await,
        json!({"servers": servers, "removedServers": []})
    );

    host.servers.settled().await;
    host.call("mail__change", json!({})).await.unwrap();
    let changed = json!({"servers": [summary("mail", &["change", "added"])], "removedServers": []});
    assert_eq!(next(&mut events).await, changed);

    host.call("files__die", json!({})).await.unwrap_err();
    assert_eq!(
        next(&mut events).await,
        json!({"servers": [], "removedServers": ["files"]})
    );
    let back = json!({"servers": [summary("files", &["die"])], "removedServers": []});
    assert_eq!(next(&mut events).await, back);
}

#[tokio::test]
async fn a_definition_that_models_do_not_see_whole_is_kept_word_for_word() {
    let folder = tempfile::tempdir().unwrap();
    let pins = Arc::new(Pins::open(DataFolder::open(folder.path()).unwrap()).unwrap());
    let long = format!("Reads.{}{}", "\u{200b}", "x".repeat(100_000));
    let peer = Peer::new("s", &["plain"]);
    let mut tool = described("long");
    tool["description"] = json!(long);
    peer.set_tools(vec![described("plain"), tool]);
    let server = peer.server();
    let answers = crate::requests::Answers::default();
    let limit = std::time::Duration::from_secs(20);
    let connection = crate::connection::Connection::open(&server, &answers, limit)
        .await
        .unwrap();
    for _ in 0..2 {
        let tools = crate::connection::list_tools(connection.peer(), &server, limit)
            .await
            .unwrap();
        assert_eq!(pins.compare(&server, tools.tools).await.admitted.len(), 2);
    }
    let copies: Vec<_> = std::fs::read_dir(folder.path().join("definitions")).unwrap().collect();
    assert_eq!(copies.len(), 1, "the plain one is shown as it is");
    let copy = std::fs::read(copies[0].as_ref().unwrap().path()).unwrap();
    let copy: Value = serde_json::from_slice(&copy).unwrap();
    assert_eq!(
        (&copy["server"], &copy["tool"], &copy["description"]),
        (&json!("s"), &json!("long"), &json!(long))
    );
}

#[tokio::test(start_paused = true)]
async fn programs_outside_the_allow_list_are_no_servers() {
    let marker = tempfile::tempdir().unwrap();
    let file = marker.path().join("started");
    let touch = McpServer::process("touch", "touch").args([file.display().to_string()]);
    let config = json!({"Mcp": {"AllowedCommands": ["uvx mcp-server-time **"]}}).to_string();
    let host = Host::configured(McpTools::default().server(touch), &config).await;
    assert_eq!(host.servers.list(), []);
    assert!(!file.exists(), "nothing was started");
}
