//! Servers of every version of the protocol.

use rockbot_core::tool::ToolErrorCode;
use serde_json::json;
use tokio::time::Instant;

use super::peer::{Era, Peer};
use super::{Host, tools_of};
use crate::McpServerState;

#[tokio::test(start_paused = true)]
async fn a_server_of_any_era_is_called() {
    let eras = [
        Era::Today,
        Era::Session("2025-11-25"),
        Era::Session("2025-06-18"),
        Era::Session("2025-03-26"),
        Era::Session("2024-11-05"),
        Era::SilentSession,
        Era::EmptySession,
        Era::NamedSession("2025-06-18"),
        Era::EndingSession,
    ];
    for era in eras {
        let peer = Peer::of_era("s", era, &["echo", "change"]);
        let host = Host::start(tools_of(&[&peer])).await;
        let said = host.call("s__echo", json!({"text": "hi"})).await;
        assert_eq!(said.unwrap().content.as_text(), Some("hi"), "{era:?}");
        // A change is announced by a notification in each of them.
        host.call("s__change", json!({})).await.unwrap();
        host.until_tools(&["s__echo", "s__change", "s__added"]).await;
        let handshakes = peer.seen("initialize").len();
        assert_eq!(handshakes, usize::from(era != Era::Today), "{era:?}");
        let connections = if era == Era::EndingSession { 2 } else { 1 };
        assert_eq!(peer.connections(), connections, "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn servers_that_ignore_the_question_of_their_era_delay_each_other_not() {
    let peers = ["a", "b", "c", "d"].map(|name| Peer::of_era(name, Era::SilentSession, &["echo"]));
    let began = Instant::now();
    let host = Host::start(tools_of(&peers.iter().collect::<Vec<_>>())).await;
    assert_eq!(host.tools().len(), 4);
    assert_eq!(began.elapsed().as_secs(), 10, "the probe of one, not of four");
}

#[tokio::test(start_paused = true)]
async fn a_server_of_a_newer_protocol_is_told_apart_from_a_broken_one() {
    let peer = Peer::of_era("s", Era::Newer, &["echo"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let McpServerState::Failed(reason) = host.servers.list()[0].state.clone() else {
        panic!("{:?}", host.servers);
    };
    assert!(reason.contains("2099-01-01"), "{reason}");
    assert!(
        peer.seen("initialize").is_empty(),
        "its answer is one of today's protocol"
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_no_known_one_is_refused() {
    for era in [
        Era::Session("2099-01-01"),
        Era::Session("1.0\u{1b}[31m"),
        Era::NamedSession("2099-01-01"),
    ] {
        let peer = Peer::of_era("s", era, &["echo"]);
        let host = Host::start(tools_of(&[&peer])).await;
        let (Era::Session(version) | Era::NamedSession(version)) = era else {
            panic!("{era:?}");
        };
        let spoken = version.replace("\u{1b}", r"");
        let known = "`2024-11-05`, `2025-03-26`, `2025-06-18`, `2025-11-25`, `2026-07-28`";
        let reason = format!(
            "the server speaks no known version of the protocol, but `{spoken}`: known are {known}; update the server or \
             this program"
        );
        assert_eq!(host.servers.list()[0].state, McpServerState::Failed(reason), "{era:?}");
        assert!(host.tools().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_to_be_asked_again_is_not_asked_forever() {
    let peer = Peer::of_era("s", Era::Today, &["again"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let error = host.call("s__again", json!({})).await.unwrap_err();
    assert_eq!(error.code(), ToolErrorCode::ExecutionFailed);
    assert_eq!(
        error.message(),
        "the MCP server `s` asked for input 10 times without an answer to the call"
    );
    assert_eq!(peer.seen("tools/call").len(), 10);
}
