//! Servers of which one tool, one page or one part of an answer is unusable: that is left out by
//! name, and the rest stays.

use rockbot_core::tool::ToolErrorCode;
use serde_json::{Value, json};

use super::Host;
use super::peer::{Era, Peer, described};
use super::{tools_of, until};
use crate::{McpServerState, McpTools};

/// The forms of the protocol, whose results differ.
const ERAS: [Era; 2] = [Era::Today, Era::Session("2025-06-18")];

fn without_schema(name: &str) -> Value {
    json!({"name": name, "description": "Does it."})
}

fn with_type(name: &str, kind: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"x": {"type": kind}}}})
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_be_used_is_left_out_by_name() {
    for era in ERAS {
        let peer = Peer::of_era("s", era, &[]);
        peer.set_tools(vec![
            described("good"),
            without_schema("bare\u{1b}[31m"),
            with_type("typo", "strin"),
            json!({"inputSchema": {"type": "object"}}),
            json!("nonsense"),
            without_schema("denied"),
            described("echo"),
        ]);
        let host = Host::start(McpTools::default().server(peer.server().deny_tools(["denied"]))).await;
        assert_eq!(host.tools(), ["s__good", "s__echo"], "{era:?}");
        let status = host.servers.list().remove(0);
        let expected = [
            "the tool `bare[31m`: its definition cannot be read: missing field `inputSchema`",
            "the tool `typo`: `type` must be one or a list of `object`, `array`, `string`, `integer`, `number`, `boolean` \
             and `null`, not \"strin\"",
            "tool 4, which has no name: its definition cannot be read: missing field `name`",
            "tool 5, which has no name: its definition cannot be read: invalid type: string \"nonsense\", expected struct \
             Tool",
        ];
        assert_eq!(
            (status.state, &*status.left_out),
            (McpServerState::Connected, &expected.map(str::to_owned)[..])
        );
        let listed = host.manage("mcp_list_services", json!({})).await.unwrap();
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed[0]["leftOut"], json!(expected));
        let missing = json!({"server_name": "s", "tool_name": "typo"});
        let (code, text) = host.manage("mcp_get_service_details", missing).await.unwrap_err();
        assert_eq!(code, ToolErrorCode::InvalidArguments);
        assert!(text.contains(expected[1]), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_fails_is_left_out_and_listed_again() {
    for era in ERAS {
        for page in [1, 2] {
            let peer = Peer::with_pages("s", era, &["a", "b", "c"]);
            peer.fail_page(page);
            let host = Host::start(tools_of(&[&peer])).await;
            let before = ["s__a", "s__b", "s__c"];
            assert_eq!(host.tools(), before[..page - 1], "{era:?} {page}");
            let status = host.servers.list().remove(0);
            assert_eq!(status.state, McpServerState::Connected);
            assert_eq!(
                status.left_out,
                [format!(
                    "page {page} of the list of tools, and those after it: the shelf is empty"
                )]
            );
            peer.fail_page(0);
            host.until_tools(&before).await;
            assert!(host.servers.list()[0].left_out.is_empty());
            assert_eq!(peer.connections(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_known_stay_while_their_page_fails() {
    let peer = Peer::with_pages("s", Era::default(), &["a", "change", "c"]);
    let host = Host::start(tools_of(&[&peer])).await;
    peer.fail_page(2);
    let lists = peer.seen("tools/list").len();
    host.call("s__change", json!({})).await.unwrap();
    until(|| peer.seen("tools/list").len() >= lists + 2 && !host.servers.list()[0].left_out.is_empty()).await;
    assert_eq!(host.tools(), ["s__a", "s__change", "s__c"]);
}

#[tokio::test(start_paused = true)]
async fn a_part_of_an_answer_that_cannot_be_read_is_left_out_by_name() {
    for era in ERAS {
        let peer = Peer::of_era("s", era, &["parts"]);
        let host = Host::start(tools_of(&[&peer])).await;
        let answer = host.call("s__parts", json!({})).await.unwrap();
        assert_eq!(
            (answer.content.into_words().as_str(), answer.is_error),
            (
                "one\n[a part of the kind `hologram`, which is not known here, is left out]\n[a part of the kind `image` is \
                 left out: missing field `data`]\n[a part without a kind is left out]\ntwo",
                true
            ),
            "{era:?}"
        );
    }
}
