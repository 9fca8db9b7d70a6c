//! The servers in the first request to a model: a line for each, and the tools of small ones
//! outright.

use std::time::Duration;

use rockbot_core::context::WaitReason;
use rockbot_core::tool::{AwaitedTools, PendingTools, ToolRegistry as _};
use serde_json::json;
use tokio::time::Instant;

use super::peer::{Peer, described};
use super::{Host, tools_of};
use crate::{McpExposure, McpTools};

/// Returns the lines of the groups that a model can activate, sorted.
fn lines(host: &Host) -> Vec<String> {
    let snapshot = host.registry.snapshot();
    let lines = snapshot.groups().into_iter();
    let mut lines: Vec<_> = lines
        .map(|group| format!("{}: {}", group.name, group.summary))
        .collect();
    lines.sort();
    lines
}

/// Returns the names of the tools that are always shown, sorted.
fn shown(host: &Host) -> Vec<String> {
    let snapshot = host.registry.snapshot();
    let always = snapshot.entries().iter().filter(|entry| entry.exposure().is_always());
    let mut names: Vec<_> = always.map(|entry| entry.registration().name.to_string()).collect();
    names.sort();
    names
}

fn large(name: &'static str, tools: usize) -> Peer {
    let peer = Peer::new(name, &[]);
    peer.set_tools((0..tools).map(|n| described(&format!("tool_{n}"))).collect());
    peer
}

#[tokio::test(start_paused = true)]
async fn a_server_has_one_line_however_large_it_is_and_its_tools_are_searched() {
    let big = large("big", 900);
    let medium = large("medium", 40);
    let host = Host::start(tools_of(&[&big, &medium])).await;
    assert_eq!(
        lines(&host),
        [
            "mcp-big: Echoes texts. (900 tools, found by words)",
            "mcp-medium: Echoes texts."
        ]
    );
    assert!(shown(&host).is_empty());
    let snapshot = host.registry.snapshot();
    let activated: Vec<_> = snapshot
        .of_groups(&["mcp-big".into()])
        .map(|entry| entry.registration().name.to_string())
        .collect();
    assert_eq!(activated, ["mcp_find__big"]);

    let found = host
        .call("mcp_find__big", json!({"query": "tool 899", "limit": 1}))
        .await
        .unwrap();
    assert_eq!(found.activates, ["big__tool_899"]);
    let text = found.content.into_words();
    assert!(
        text.starts_with("You have these tools now:\n- big__tool_899 "),
        "{text}"
    );
    let none = host.call("mcp_find__big", json!({"query": "zebra"})).await.unwrap();
    assert_eq!(
        none.content.as_text(),
        Some("No tool has these words: try others, or mcp_list_services.")
    );
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_small_servers_are_shown_while_they_fit_the_budget() {
    let peers = [
        Peer::new("a", &["x"]),
        large("b", 20),
        Peer::new("c", &["x", "y"]),
        Peer::new("d", &["x"]),
    ];
    let peers: Vec<_> = peers.iter().collect();
    // A tool of these servers has about 40 tokens.
    let host = Host::start(tools_of(&peers).max_shown_tokens(130)).await;
    assert_eq!(shown(&host), ["a__x", "c__x", "c__y"]);
    assert_eq!(lines(&host), ["mcp-b: Echoes texts.", "mcp-d: Echoes texts."]);

    let all = Host::start(tools_of(&peers).max_shown_tokens(10_000).max_tools(22)).await;
    assert_eq!(shown(&all).len(), 22);
    assert_eq!(
        lines(&all),
        ["mcp-c: Echoes texts."],
        "a server beyond the number of tools"
    );
    for tools in [
        tools_of(&peers).max_shown_tokens(0),
        tools_of(&peers).exposure(McpExposure::Lazy),
    ] {
        let host = Host::start(tools).await;
        assert!(shown(&host).is_empty());
        assert_eq!(lines(&host).len(), 4);
    }
    let host = Host::configured(tools_of(&peers), r#"{"Mcp": {"MaxShownTokens": 45}}"#).await;
    assert_eq!(shown(&host), ["a__x"]);
}

#[tokio::test(start_paused = true)]
async fn the_lines_of_many_servers_share_a_budget() {
    let names: Vec<&'static str> = (0..120).map(|n| &*format!("server-{n}").leak()).collect();
    let peers: Vec<_> = names.iter().map(|name| Peer::new(name, &["x"])).collect();
    for peer in &peers {
        peer.set_instructions(&"word ".repeat(100));
    }
    let tools = peers
        .iter()
        .fold(McpTools::default(), |tools, peer| tools.server(peer.server()));
    let host = Host::start(tools.max_shown_tokens(0)).await;
    let lines = lines(&host);
    assert_eq!(lines.len(), 120);
    let length: usize = lines.iter().map(String::len).sum();
    assert!(length < 8_000, "{length} bytes, of which the names are {}", 120 * 12);
    assert_eq!(lines[0], "mcp-server-0: word word word word …");

    let one = Host::start(McpTools::default().server(peers[0].server()).max_shown_tokens(0)).await;
    assert!(self::lines(&one)[0].len() > 150, "one server has room for more words");
}

#[tokio::test(start_paused = true)]
async fn turns_wait_for_servers_that_are_being_connected() {
    let good = Peer::new("good", &["x"]);
    let bad = Peer::silent("bad");
    let host = Host::begin(tools_of(&[&good, &bad])).await;
    let pending = host.parts.get::<dyn PendingTools>().unwrap();
    let began = Instant::now();
    let awaited = |names: &[&str]| {
        let names = names.iter().map(ToString::to_string).collect();
        AwaitedTools::new(began + Duration::from_secs(20), WaitReason::Servers(names))
    };
    assert_eq!(pending.awaited(), Some(awaited(&["bad", "good"])));
    host.until_tools(&["good__x"]).await;
    assert_eq!(pending.awaited(), Some(awaited(&["bad"])));
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(pending.awaited(), None, "they have had their time");

    let patient = Host::begin(tools_of(&[&bad]).startup_wait(Duration::from_secs(600))).await;
    let pending = patient.parts.get::<dyn PendingTools>().unwrap();
    let began = Instant::now();
    pending.arrived().await;
    assert_eq!(began.elapsed(), Duration::from_secs(60), "the attempt has failed");
    assert_eq!(pending.awaited(), None);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(pending.awaited(), None, "turns do not wait for a further attempt");

    let hasty = Host::configured_at_once(tools_of(&[&bad]), r#"{"Mcp": {"StartupWait": "00:00:00"}}"#).await;
    assert_eq!(hasty.parts.get::<dyn PendingTools>().unwrap().awaited(), None);
}
