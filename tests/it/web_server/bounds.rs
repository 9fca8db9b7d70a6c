//! Bounds: bodies, messages, streams, slow readers, the end of the host.

use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use rockbot::config::Config;
use rockbot::prelude::FromConfig as _;
use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use serde_json::json;

use super::client::{Answer, Events, User, lines};
use super::{Serving, server, waiting};
use crate::support::metrics::measured;

const SETTINGS: &str = r#"
    [WebServer]
    Address = "127.0.0.1:0"
    MaxBodyBytes = 1000
    MaxStreams = 1
    MessagesPerMinute = 2
    Users = [{ Name = "ann", Token = "sesame" }, { Name = "bob", Token = "mustard" }]
"#;

#[tokio::test]
async fn bodies_messages_and_streams_are_bounded() {
    let (wait, gate) = waiting("wait");
    let model = ScriptedModel::new().calls("wait", json!({}));
    let model = model.says("Done.").says("Done.").says("Done.");
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new().with_text("agent.toml", SETTINGS).unwrap();
    let host = AgentHost::configured(&config, folder.path()).unwrap();
    let serving = Serving::start(host.chat(model).tool(wait)).await;
    let ann = serving.ann();
    let path = "/api/sessions/s/messages";
    let long = json!({"content": "x".repeat(1000)});
    assert_eq!(ann.post(path, &long).await.summary(), "413 body_too_long");

    let request = ann
        .json("POST", path, &json!({"content": "hi"}))
        .header("accept", "text/event-stream");
    let mut stream = Events::of(request.send().await.unwrap());
    let turn = stream.until("tool_started").await[0].data["turn"]
        .as_str()
        .unwrap()
        .to_owned();
    let events = format!("/api/turns/{turn}/events");
    assert_eq!(ann.get(&events).await.summary(), "429 rate_limit_exceeded");
    // A message that would be answered by a stream is refused as a whole, and is not counted.
    let request = ann.json("POST", path, &json!({"content": "hi"}));
    let refused = request.header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(Answer::of(refused).await.summary(), "429 rate_limit_exceeded");
    // Another user is not held up.
    let of_bob = serving.bob().post(path, &json!({"content": "hi"})).await.json();
    let of_bob = format!("/api/turns/{}/events", of_bob["turn"].as_str().unwrap());
    gate.add_permits(1);
    assert_eq!(lines(&stream.all().await).last().unwrap(), "final Done.");
    serving.bob().events(&of_bob, None).await.all().await;
    ann.events(&events, None).await.all().await;

    assert_eq!(ann.post(path, &json!({"content": "one more"})).await.status, 202);
    let refused = ann
        .json("POST", path, &json!({"content": "too many"}))
        .send()
        .await
        .unwrap();
    let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    assert_eq!(Answer::of(refused).await.summary(), "429 rate_limit_exceeded");
    serving.stop().await;
}

#[tokio::test]
async fn a_reader_that_reads_nothing_holds_up_no_other() {
    // More than the buffers of a connection take.
    let long = "word ".repeat(1 << 20);
    let (wait, gate) = waiting("wait");
    let model = ScriptedModel::new().calls("wait", json!({})).says(long.trim());
    let serving = Serving::start(AgentHost::in_memory().chat(model).tool(wait).add(server())).await;
    let ann = serving.ann();
    let posted = ann
        .post("/api/sessions/s/messages", &json!({"content": "hi"}))
        .await
        .json();
    let path = format!("/api/turns/{}/events", posted["turn"].as_str().unwrap());
    let slow = ann.events(&path, None).await;
    let quick = ann.events(&path, None).await;
    gate.add_permits(1);
    let read = quick.all().await;
    assert_eq!(read.last().unwrap().data["outcome"]["text"], long.trim());
    // The slow reader has lost nothing when it reads on.
    assert_eq!(slow.all().await.last(), read.last());
    serving.stop().await;
}

#[tokio::test]
async fn a_host_that_stops_ends_turns_and_answers_first() {
    let (wait, gate) = waiting("wait");
    let model = ScriptedModel::new().calls("wait", json!({})).says("Done.");
    let serving = Serving::start(AgentHost::in_memory().chat(model).tool(wait).add(server())).await;
    let ann = serving.ann();
    let request = ann
        .json("POST", "/api/sessions/s/messages", &json!({"content": "hi"}))
        .header("accept", "text/event-stream");
    let mut stream = Events::of(request.send().await.unwrap());
    stream.until("tool_started").await;
    let address = serving.address;
    let stopping = tokio::spawn(async move { serving.host.shutdown(Duration::from_secs(20)).await });
    // Refused while the host stops, with advice.
    let refused = loop {
        let answer = ann.post("/api/sessions/t/messages", &json!({"content": "late"})).await;
        if answer.status != 202 {
            break answer;
        }
    };
    assert_eq!(refused.summary(), "503 stopping");
    gate.add_permits(1);
    assert_eq!(lines(&stream.all().await).last().unwrap(), "final Done.");
    stopping.await.unwrap();
    assert!(
        tokio::net::TcpStream::connect(address).await.is_err(),
        "nothing listens"
    );
}

#[tokio::test]
async fn requests_are_counted_by_route_and_status_and_streams_while_they_are_open() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let (wait, gate) = waiting("wait");
    let model = ScriptedModel::new().calls("wait", json!({})).says("Done.");
    let serving = Serving::start(AgentHost::in_memory().chat(model).tool(wait).add(server())).await;
    let ann = serving.ann();
    // A look begins a new count.
    let opened = || {
        let all = snapshotter.snapshot().into_vec();
        let of_streams = |(key, ..): &(metrics_util::CompositeKey, _, _, _)| key.key().name() == "rockbot.http.streams";
        match all.into_iter().find(of_streams) {
            Some((.., DebugValue::Gauge(open))) => open.into_inner() as i64,
            other => panic!("{other:?}"),
        }
    };
    let posted = ann
        .post("/api/sessions/s/messages", &json!({"content": "hi"}))
        .await
        .json();
    let turn = posted["turn"].as_str().unwrap();
    let mut events = ann.events(&format!("/api/turns/{turn}/events"), None).await;
    events.until("tool_started").await;
    assert_eq!(opened(), 1);
    let second = ann.events(&format!("/api/turns/{turn}/events"), None).await;
    let third = ann.events(&format!("/api/turns/{turn}/events"), None).await;
    assert_eq!(opened(), 2);
    gate.add_permits(1);
    for stream in [events, second, third] {
        stream.all().await;
    }
    assert_eq!(opened(), -3);

    ann.post("/api/sessions/s/messages", &json!({"content": ""})).await;
    let counted = measured(&snapshotter);
    let post = "rockbot.http.requests route=/api/sessions/{session}/messages status=400";
    assert_eq!(counted.get(post), Some(&1), "{counted:#?}");
    User::new(serving.address, "wrong").get("/api/turns/a").await;
    ann.get("/api/turns/a").await;
    let counted = measured(&snapshotter);
    for status in ["401", "404"] {
        for metric in ["requests", "request.duration"] {
            let series = format!("rockbot.http.{metric} route=/api/turns/{{turn}} status={status}");
            assert_eq!(counted.get(&series), Some(&1), "{series} in {counted:#?}");
        }
    }
    serving.stop().await;
}
