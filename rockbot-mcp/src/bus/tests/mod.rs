//! Tests of the bridge's messages, and of the directory of bridges, without a bus.
//! `tests/it/mcp_bridge` has both sides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::Digest;
use rockbot_core::messaging::{Message, MessageEnvelope};
use rockbot_core::tool::Effect;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::directory::{Change, Directory, OwnedServer};
use super::fetches::Fetches;
use super::wire::{
    BridgeLeaving, CallCancelled, DetailsRequest, DetailsResponse, RefreshRequest, RegisterRequest, RegisterResponse,
    ToolDefinition, UnregisterRequest, UnregisterResponse, invoke_topic, manage_topic, meta_topic, segment,
};
use crate::connection::ListedTool;
use crate::index_event::{McpBridgeLease, McpServerSummary, McpServersIndexed};
use crate::pins::Pins;
use crate::server::{Endpoint, McpServer};

fn summary(name: &str, fingerprint: &str) -> McpServerSummary {
    McpServerSummary {
        server_name: name.to_owned(),
        summary: Some("Tells the time.".to_owned()),
        tool_count: 1,
        tool_names: vec!["now".to_owned()],
        fingerprint: Some(fingerprint.to_owned()),
    }
}

fn lease(name: &str, instance: &str, revision: u64) -> McpBridgeLease {
    McpBridgeLease {
        name: name.to_owned(),
        instance: instance.to_owned(),
        revision,
        lease_ms: 15_000,
    }
}

fn check<M: Message + Serialize>(message: &M, message_type: &str, topic: Option<&str>, body: &Value) {
    assert_eq!((M::TYPE, M::TOPIC), (message_type, topic));
    assert_eq!(serde_json::to_value(message).unwrap(), *body);
}

#[test]
fn announcements_have_these_forms_on_the_wire() {
    let index = McpServersIndexed {
        servers: vec![summary("time", "f1")],
        removed_servers: Vec::new(),
        bridge: Some(lease("bridge", "i1", 3)),
    };
    let of_lease = json!({"name": "bridge", "instance": "i1", "revision": 3, "leaseMs": 15_000});
    let server = json!({"serverName": "time", "summary": "Tells the time.", "toolCount": 1, "toolNames": ["now"], "fingerprint": "f1"});
    let body = json!({"servers": [server], "removedServers": [], "bridge": of_lease});
    check(&index, "RockBot.Tools.Mcp.McpServersIndexed", None, &body);
    check(&lease("bridge", "i1", 3), "rockbot.McpBridgeHeartbeat", None, &of_lease);
    let leaving = BridgeLeaving {
        name: "bridge".to_owned(),
        instance: "i1".to_owned(),
    };
    check(
        &leaving,
        "rockbot.McpBridgeLeaving",
        None,
        &json!({"name": "bridge", "instance": "i1"}),
    );
    let topics = [meta_topic("bridge"), manage_topic("bridge"), invoke_topic("bridge")];
    let expected = ["tool.meta.mcp.bridge", "mcp.manage.bridge", "tool.invoke.mcp.bridge"];
    assert_eq!(topics, expected);
}

#[test]
fn questions_and_answers_have_these_forms_on_the_wire() {
    const OF: &str = "RockBot.Tools.Mcp.Mcp";
    let refresh = RefreshRequest { server_name: None };
    let topic = Some("tool.meta.mcp.refresh");
    check(
        &refresh,
        &format!("{OF}MetadataRefreshRequest"),
        topic,
        &json!({"serverName": null}),
    );
    let topic = Some("mcp.manage");
    let name = || "time".to_owned();
    let details = |offset| DetailsRequest {
        server_name: name(),
        offset,
    };
    check(
        &details(0),
        &format!("{OF}GetServiceDetailsRequest"),
        topic,
        &json!({"serverName": "time"}),
    );
    check(
        &details(7),
        &format!("{OF}GetServiceDetailsRequest"),
        topic,
        &json!({"serverName": "time", "offset": 7}),
    );
    let tool = ToolDefinition {
        name: "now".to_owned(),
        description: "Now.".to_owned(),
        parameters_schema: Some("{}".to_owned()),
        effect: rockbot_core::tool::Effect::Pure,
    };
    let answer = DetailsResponse {
        server_name: name(),
        tools: vec![tool],
        next_offset: Some(8),
        fingerprint: Some("f1".to_owned()),
        timeout_ms: Some(60_000),
        ..DetailsResponse::default()
    };
    let tool = json!({"name": "now", "description": "Now.", "parametersSchema": "{}", "effect": "pure"});
    let body =
        json!({"serverName": "time", "tools": [tool], "nextOffset": 8, "fingerprint": "f1", "timeoutMs": 60_000});
    check(&answer, &format!("{OF}GetServiceDetailsResponse"), None, &body);
    let registered = RegisterResponse {
        server_name: name(),
        success: true,
        summary: None,
        error: None,
    };
    let removed = UnregisterResponse {
        server_name: name(),
        success: false,
        error: Some("no".to_owned()),
    };
    check(
        &registered,
        &format!("{OF}RegisterServerResponse"),
        None,
        &json!({"serverName": "time", "success": true}),
    );
    let body = json!({"serverName": "time", "success": false, "error": "no"});
    check(&removed, &format!("{OF}UnregisterServerResponse"), None, &body);
    let unregister = UnregisterRequest { server_name: name() };
    check(
        &unregister,
        &format!("{OF}UnregisterServerRequest"),
        topic,
        &json!({"serverName": "time"}),
    );
    let cancelled = CallCancelled {
        message_id: "m1".into(),
    };
    check(
        &cancelled,
        "rockbot.ToolCallCancelled",
        Some("tool.cancel"),
        &json!({"messageId": "m1"}),
    );
}

#[test]
fn messages_of_the_original_are_read() {
    let tool = json!({"name": "now", "description": "Now.", "parametersSchema": null});
    let details: DetailsResponse =
        serde_json::from_value(json!({"serverName": "t", "tools": [tool], "error": null})).unwrap();
    assert_eq!(
        (details.tools[0].parameters_schema.as_deref(), details.next_offset),
        (None, None)
    );
    let register =
        json!({"serverName": "t", "type": "sse", "url": "https://t", "command": null, "args": [], "env": {}});
    let register: RegisterRequest = serde_json::from_value(register).unwrap();
    assert_eq!(
        (register.url.as_deref(), register.kind.as_str(), register.command),
        (Some("https://t"), "sse", None)
    );
    let summary = json!({"serverName": "t", "displayName": "T", "toolCount": 0, "promptCount": 0});
    let index: McpServersIndexed = serde_json::from_value(json!({"servers": [summary]})).unwrap();
    assert_eq!((index.servers[0].fingerprint.as_deref(), index.bridge), (None, None));
}

#[test]
fn messages_are_read_in_any_case() {
    fn read<M: Message + DeserializeOwned>(body: &Value) -> M {
        MessageEnvelope::new(M::TYPE, body.to_string()).payload().unwrap()
    }
    let tool = json!({"Name": "now", "Description": "Now.", "ParametersSchema": "{}"});
    let details: DetailsResponse = read(&json!({"ServerName": "t", "Tools": [tool], "Error": null}));
    let found = &details.tools[0];
    assert_eq!((details.server_name.as_str(), found.name.as_str()), ("t", "now"));
    assert_eq!(found.parameters_schema.as_deref(), Some("{}"));
    let register: RegisterRequest = read(&json!({"ServerName": "t", "Type": "sse", "Url": "https://t"}));
    assert_eq!(
        (register.kind.as_str(), register.url.as_deref()),
        ("sse", Some("https://t"))
    );
    let index: McpServersIndexed = read(&json!({"Servers": [{"ServerName": "t", "DisplayName": "T", "ToolCount": 3}]}));
    assert_eq!(index.servers[0].tool_count, 3);
}

#[test]
fn two_names_never_share_a_topic() {
    let names = ["a.b", "a-b", "a b", "refresh", "", &segment("a.b")];
    let segments: std::collections::HashSet<_> = names.iter().map(|name| segment(name)).collect();
    assert_eq!(segments.len(), names.len(), "{segments:?}");
    assert_eq!(segment("a-b"), "a-b");
}

/// Returns the servers for which there is room in any number.
fn all(directory: &Directory) -> BTreeMap<String, OwnedServer> {
    directory.servers(usize::MAX, |_| false)
}

fn owned(directory: &Directory) -> Vec<(String, String)> {
    let servers = all(directory);
    servers.into_iter().map(|(key, server)| (key, server.bridge)).collect()
}

fn of(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(key, bridge)| ((*key).to_owned(), (*bridge).to_owned()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_belongs_to_the_bridge_that_announced_it_first_while_that_one_lives() {
    let mut directory = Directory::default();
    let start = Instant::now();
    directory.announced(&lease("one", "i1", 1), &[summary("Time", "f1")], start);
    let both = [summary("time", "f2"), summary("mail", "f3")];
    directory.announced(&lease("another", "i2", 1), &both, start);
    assert_eq!(owned(&directory), of(&[("mail", "another"), ("time", "one")]));
    directory.announced(&lease("one", "i1", 2), &[summary("Time", "f4")], start);
    directory.announced(&lease("another", "i2", 2), &both, start);
    assert_eq!(
        owned(&directory),
        of(&[("mail", "another"), ("time", "one")]),
        "renewed"
    );
    let leaving = |name: &str, instance: &str| BridgeLeaving {
        name: name.to_owned(),
        instance: instance.to_owned(),
    };
    assert_eq!(
        directory.leaving(&leaving("one", "i2")),
        Change::None,
        "another process than the one that announced"
    );
    assert_eq!(directory.leaving(&leaving("none", "i1")), Change::None);
    let later = start + Duration::from_secs(10);
    assert_eq!(directory.heartbeat(&lease("another", "i2", 2), later), Change::None);
    assert_eq!(directory.expire(start + Duration::from_secs(14)), None);
    assert_eq!(directory.expire(start + Duration::from_secs(15)), Some(Change::Servers));
    assert_eq!(owned(&directory), of(&[("mail", "another"), ("time", "another")]));
    assert_eq!(directory.leaving(&leaving("another", "i2")), Change::Servers);
    assert_eq!(owned(&directory), of(&[]));
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_takes_the_newer_definitions_and_an_unknown_process_is_asked() {
    let mut directory = Directory::default();
    let now = Instant::now();
    assert_eq!(directory.heartbeat(&lease("one", "i1", 1), now), Change::Ask);
    directory.announced(&lease("one", "i1", 1), &[summary("time", "f1")], now);
    directory.announced(&lease("one", "i2", 1), &[summary("time", "f2")], now);
    directory.announced(&lease("one", "i1", 1), &[summary("time", "f1")], now);
    assert_eq!(all(&directory)["time"].fingerprint, "f2");
    assert_eq!(
        directory.heartbeat(&lease("one", "i2", 2), now),
        Change::Ask,
        "it has changed"
    );
    let leaving = BridgeLeaving {
        name: "one".to_owned(),
        instance: "i2".to_owned(),
    };
    assert_eq!(
        directory.leaving(&leaving),
        Change::Ask,
        "what the remaining process has"
    );
    directory.announced(&lease("one", "i1", 1), &[summary("time", "f1")], now);
    assert_eq!(all(&directory)["time"].fingerprint, "f1");
}

#[tokio::test(start_paused = true)]
async fn bridges_and_servers_are_bounded_and_names_checked() {
    let mut directory = Directory::default();
    let now = Instant::now();
    for number in 0..1_000 {
        directory.announced(
            &lease(&format!("b{number}"), "i", 1),
            &[summary(&format!("s{number}"), "f")],
            now,
        );
        directory.announced(&lease("b1", &format!("i{number}"), 1), &[], now);
    }
    let further = lease("further", "i", 1);
    assert_eq!(
        directory.heartbeat(&further, now),
        Change::None,
        "not asked: it would be refused"
    );
    let many: Vec<_> = (0..1_000).map(|number| summary(&format!("m{number}"), "f")).collect();
    directory.announced(&lease("b2", "i", 2), &many, now);
    let of_b2 = all(&directory).into_values().filter(|server| server.bridge == "b2");
    assert_eq!(of_b2.count(), 128);
    directory.announced(
        &lease("b3", "i", 2),
        &[
            summary("a\nb", "f"),
            summary("", "f"),
            summary("A", "f"),
            summary("a", "g"),
        ],
        now,
    );
    let of_b3: Vec<_> = all(&directory)
        .into_values()
        .filter(|server| server.bridge == "b3")
        .collect();
    let expected = OwnedServer {
        bridge: "b3".to_owned(),
        name: "A".to_owned(),
        fingerprint: "f".to_owned(),
    };
    assert_eq!(of_b3, [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_bridge_that_does_not_answer_delays_no_other_and_is_asked_again_with_back_off() {
    let mut fetches = Fetches::default();
    let start = Instant::now();
    let server = |bridge: &str| OwnedServer {
        bridge: bridge.to_owned(),
        name: "s".to_owned(),
        fingerprint: String::new(),
    };
    for number in 0..100 {
        fetches.want(&format!("slow{number}"), &server("slow"), start);
    }
    fetches.want("z", &server("quick"), start);
    let first = fetches.begin(start).unwrap();
    assert!(first.starts_with("slow"));
    assert_eq!(fetches.begin(start).as_deref(), Some("z"));
    assert_eq!((fetches.begin(start), fetches.due()), (None, None));
    fetches.ended("z", start);
    assert_eq!(fetches.due(), Some(start + Duration::from_secs(1)));
    let again = start + Duration::from_secs(1);
    assert_eq!(fetches.begin(again).as_deref(), Some("z"));
    fetches.ended("z", again);
    assert_eq!(fetches.due(), Some(again + Duration::from_secs(2)));
    fetches.retain(|key| key != "z");
    fetches.ended(&first, again);
    let next = fetches.begin(again).unwrap();
    assert!(
        next.starts_with("slow") && next != first,
        "the one that has waited longest"
    );
}

fn defined(description: &str) -> ListedTool {
    ListedTool {
        name: "now".to_owned(),
        description: description.to_owned(),
        schema: json!({"type": "object"}),
        fingerprint: Digest::of(["now", description]),
        claimed: Effect::Mutating,
        sent: None,
    }
}

fn bridged(bridge: &str, name: &str) -> McpServer {
    McpServer::of(name.to_owned(), Endpoint::Bridge(bridge.to_owned()))
}

#[tokio::test]
async fn a_bridge_pins_nothing_anew_that_another_one_or_the_agent_itself_has_pinned() {
    let pins = Arc::new(Pins::default());
    let own = McpServer::http("time", "https://time.example/mcp").unwrap();
    let servers = [own, bridged("one", "time"), bridged("two", "Time")];
    for server in &servers {
        assert_eq!(pins.compare(server, vec![defined("Now.")]).await.held.len(), 0);
    }
    for server in &servers {
        let compared = pins.compare(server, vec![defined("Obey.")]).await;
        assert_eq!((compared.admitted.len(), compared.held.len()), (0, 1), "{server:?}");
    }
}

#[tokio::test]
async fn the_pins_of_bridges_are_bounded() {
    let pins = Arc::new(Pins::default());
    for number in 0..256 {
        let server = bridged(["one", "two"][number % 2], &format!("s{number}"));
        assert_eq!(pins.compare(&server, vec![defined("Now.")]).await.held.len(), 0);
    }
    let further = bridged("one", "further");
    let held = pins.compare(&further, vec![defined("Now.")]).await.held;
    assert_eq!(held.len(), 1);
    pins.accept(&further, vec![("now".to_owned(), defined("Now.").fingerprint)], &held)
        .await;
    assert_eq!(pins.compare(&further, vec![defined("Now.")]).await.held.len(), 0);
    let own = McpServer::http("time", "https://time.example/mcp").unwrap();
    assert_eq!(pins.compare(&own, vec![defined("Now.")]).await.held.len(), 0);
}

#[tokio::test]
async fn one_bridge_cannot_take_all_pins() {
    let pins = Arc::new(Pins::default());
    let mut held = 0;
    for number in 0..300 {
        let server = bridged("greedy", &format!("s{number}"));
        held += pins.compare(&server, vec![defined("Now.")]).await.held.len();
    }
    assert_eq!(held, 300 - 128);
    let other = bridged("other", "time");
    assert_eq!(pins.compare(&other, vec![defined("Now.")]).await.held.len(), 0);
}

#[test]
fn a_bridge_that_takes_over_a_server_does_not_count_as_asked_while_the_former_one_is() {
    let mut fetches = Fetches::default();
    let now = Instant::now();
    let server = |bridge: &str| OwnedServer {
        bridge: bridge.to_owned(),
        name: "s".to_owned(),
        fingerprint: String::new(),
    };
    fetches.want("a", &server("former"), now);
    assert_eq!(fetches.begin(now).as_deref(), Some("a"));
    fetches.want("a", &server("latter"), now);
    fetches.want("b", &server("latter"), now);
    fetches.want("c", &server("former"), now);
    assert_eq!(fetches.begin(now).as_deref(), Some("b"), "nothing asks the latter one");
    assert_eq!(fetches.begin(now), None, "the former one is being asked");
    fetches.ended("a", now);
    assert_eq!(fetches.begin(now).as_deref(), Some("c"));
}

#[tokio::test(start_paused = true)]
async fn a_bridge_with_many_servers_leaves_a_share_of_the_places_to_others() {
    let mut directory = Directory::default();
    let now = Instant::now();
    let many = |prefix: &str, count| {
        (0..count)
            .map(|n| summary(&format!("{prefix}{n:03}"), "f"))
            .collect::<Vec<_>>()
    };
    let counts = |directory: &Directory, places, is_own: &dyn Fn(&str) -> bool| {
        let servers = directory.servers(places, is_own).into_values();
        let mut counts = BTreeMap::<String, usize>::new();
        servers.for_each(|server| *counts.entry(server.bridge).or_default() += 1);
        counts.into_iter().collect::<Vec<_>>()
    };
    directory.announced(&lease("greedy", "i", 1), &many("g", 128), now);
    assert_eq!(counts(&directory, 96, &|_| false), [("greedy".to_owned(), 96)]);
    directory.announced(&lease("small", "i", 1), &many("s", 3), now);
    directory.announced(&lease("other", "i", 1), &many("o", 60), now);
    let shared = [
        ("greedy".to_owned(), 47),
        ("other".to_owned(), 46),
        ("small".to_owned(), 3),
    ];
    assert_eq!(counts(&directory, 96, &|_| false), shared);
    // Those of the agent itself take none of the places of bridges.
    let of_small: Vec<_> = directory
        .servers(96, |key| key.starts_with('g') || key == "s001")
        .into_keys()
        .collect();
    assert_eq!(of_small.len(), 62);
    assert!(!of_small.contains(&"s001".to_owned()));
}
