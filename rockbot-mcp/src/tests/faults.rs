//! Servers that hang, die, flood and speak nonsense: each call ends in one error that says what
//! to do.

use rockbot_core::tool::ToolErrorCode;
use serde_json::json;
use tokio::time::Instant;

use super::peer::{Era, Peer};
use super::{Host, tools_of};
use crate::McpTools;

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_delays_neither_the_start_nor_the_others() {
    let began = Instant::now();
    let silent = Peer::silent("silent");
    let good = Peer::new("good", &["echo"]);
    let host = Host::begin(tools_of(&[&silent, &good])).await;
    assert_eq!(began.elapsed().as_secs(), 0, "the host starts at once");
    host.until_tools(&["good__echo"]).await;
    assert_eq!(began.elapsed().as_secs(), 0, "the others do not wait for it");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_ends_in_time_and_its_server_is_told() {
    let peer = Peer::new("s", &["hang", "echo"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let error = host.call("s__hang", json!({})).await.unwrap_err();
    assert_eq!(error.code(), ToolErrorCode::OutcomeUnknown);
    assert_eq!(
        error.message(),
        "the MCP server `s` did not answer within 60s; it may or may not have taken effect, so check before you try it \
         again"
    );
    host.call("s__echo", json!({})).await.unwrap();
    assert_eq!(peer.seen("notifications/cancelled").len(), 1);
    assert_eq!(peer.connections(), 1, "the connection stays");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_in_a_call_is_connected_again_and_the_call_is_not_repeated() {
    let peer = Peer::new("s", &["die", "echo"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let error = host.call("s__die", json!({})).await.unwrap_err();
    assert_eq!(error.code(), ToolErrorCode::OutcomeUnknown);
    assert!(error.message().contains("was lost during the call"), "{error}");
    assert_eq!(peer.seen("tools/call").len(), 1);
    let said = host.call("s__echo", json!({"text": "again"})).await.unwrap();
    assert_eq!(said.content.as_text(), Some("again"));
    assert_eq!(peer.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_be_repeated_is_repeated_once() {
    let peer = Peer::new("s", &[]);
    let mut tool = super::peer::described("die_once");
    tool["annotations"] = json!({"readOnlyHint": true});
    peer.set_tools(vec![tool]);
    let host = Host::start(McpTools::default().server(peer.server().trusted(true))).await;
    let said = host.call("s__die_once", json!({"text": "x"})).await.unwrap();
    assert_eq!(said.content.as_text(), Some("x"));
    assert_eq!((peer.seen("tools/call").len(), peer.connections()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn nonsense_between_answers_does_no_harm() {
    let names = ["twice", "string_id", "nonsense", "long_line", "flood", "echo"];
    let peer = Peer::new("s", &names);
    let host = Host::start(tools_of(&[&peer])).await;
    for name in names {
        let said = host.call(&format!("s__{name}"), json!({"text": name})).await;
        assert_eq!(said.unwrap().content.as_text(), Some(name));
    }
    let lists = peer.seen("tools/list").len();
    assert!(lists <= 10, "2000 announced changes are a few lists: {lists}");
    assert_eq!(peer.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_another_question_is_none() {
    let peer = Peer::new("s", &["wrong_id"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let error = host.call("s__wrong_id", json!({})).await.unwrap_err();
    assert_eq!(error.code(), ToolErrorCode::OutcomeUnknown);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_without_its_escape_sequences() {
    let peer = Peer::new("s", &["refuse"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let error = host.call("s__refuse", json!({})).await.unwrap_err();
    assert_eq!(error.code(), ToolErrorCode::InvalidArguments);
    assert_eq!(error.message(), r"`s` refuses the call: Unknown tool: refuse\u{1b}[31m");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_end_ends() {
    let peer = Peer::paging("s", u32::MAX);
    let host = Host::start(tools_of(&[&peer])).await;
    assert_eq!(host.tools(), ["s__echo"]);
    assert_eq!(peer.seen("tools/list").len(), 64);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_too_late_belongs_to_no_other_call() {
    let peer = Peer::new("s", &["late", "echo"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let error = host.call("s__late", json!({"text": "late"})).await.unwrap_err();
    assert_eq!(error.code(), ToolErrorCode::OutcomeUnknown);
    // The server answers the first call before this one.
    let said = host.call("s__echo", json!({"text": "in time"})).await.unwrap();
    assert_eq!(said.content.as_text(), Some("in time"));
    assert_eq!(peer.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_another_program_after_its_restart_is_held() {
    let peer = Peer::new("s", &["die", "echo"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let mut other = super::peer::described("echo");
    other["inputSchema"] = json!({"type": "object", "properties": {"password": {"type": "string"}}});
    peer.set_tools(vec![super::peer::described("die"), other]);
    host.call("s__die", json!({})).await.unwrap_err();
    host.until_tools(&["s__die"]).await;
    let status = host.servers.list().remove(0);
    assert_eq!(
        (status.tools, status.held),
        (vec!["die".to_owned()], vec!["echo".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_after_it_announced_a_change_delays_no_stop() {
    let peer = Peer::new("s", &["change"]);
    let host = Host::start(tools_of(&[&peer])).await;
    let lists = peer.seen("tools/list").len();
    peer.hang();
    host.call("s__change", json!({})).await.unwrap();
    while peer.seen("tools/list").len() == lists {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let began = Instant::now();
    host.running.stop().await;
    assert!(began.elapsed().as_secs() < 6, "{:?}", began.elapsed());
    assert!(host.tools().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_refused_or_cut_is_made_again() {
    let peer = Peer::of_era("s", Era::Today, &["change", "echo"]);
    peer.cut();
    let host = Host::start(tools_of(&[&peer])).await;
    while peer.seen("subscriptions/listen").len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    host.call("s__change", json!({})).await.unwrap();
    host.until_tools(&["s__change", "s__echo", "s__added"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_time_limit_is_possible() {
    let peer = Peer::new("s", &["echo"]);
    let server = peer.server().time_limit(std::time::Duration::MAX);
    let host = Host::start(McpTools::default().server(server)).await;
    let said = host.call("s__echo", json!({"text": "x"})).await.unwrap();
    assert_eq!(said.content.as_text(), Some("x"));
}
