//! Bounds: bodies, messages, streams, slow readers, the end of the host.

use std::time::Duration;

use rockbot::config::Config;
use rockbot::prelude::FromConfig as _;
use rockbot_core::testing::ScriptedModel;
use rockbot_host::AgentHost;
use serde_json::json;

use super::client::{Answer, Events, lines};
use super::{Serving, server, waiting};

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
