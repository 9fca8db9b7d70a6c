//! The server under load, by hand: `cargo test --release --all-features --test it -- --ignored --nocapture
//! web_server::load`. It prints figures, and fails if a message is refused or lost.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rockbot::config::Config;
use rockbot::prelude::{AgentHost, FromConfig as _};
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use super::Serving;
use super::client::User;

const SETTINGS: &str = r#"
    [WebServer]
    Address = "127.0.0.1:0"
    MaxConnections = 15000
    MaxStreams = 2000
    MessagesPerMinute = 100000
    Users = [{ Name = "ann", Token = "sesame" }, { Name = "bob", Token = "mustard" }]
"#;

/// Open event streams.
const STREAMS: usize = 1_000;

/// Messages in a second, and for how long.
const RATE: u64 = 200;
const SECONDS: u64 = 20;

/// Messages without an answer so far, at most: on a machine that is busy with other work, the rate
/// falls instead of the host's backlog filling up, which refuses messages.
const IN_FLIGHT: usize = 500;

/// Connections that only sit.
const IDLE: usize = 10_000;

/// Opens connections, says so, and sits.
const SIT: &str = "
import socket, sys, time
port, count = map(int, sys.argv[1:])
sitting = [socket.create_connection(('127.0.0.1', port)) for _ in range(count)]
print('connected', flush=True)
time.sleep(600)
";

/// A model that answers at once, but holds the messages that ask for it.
#[derive(Debug)]
struct Quick(Arc<Semaphore>);

#[async_trait]
impl ChatClient for Quick {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let last = call.request.messages.last();
        if last.is_some_and(|message| message.text().contains("hold")) {
            // Closed at the end.
            let _ = self.0.acquire().await;
        }
        Ok(ChatResponse::text("Here."))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Returns the memory of this process, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}

async fn post(user: &User, session: &str, text: &str) -> String {
    let path = format!("/api/sessions/{session}/messages");
    let posted = user.post(&path, &json!({"content": text})).await;
    assert_eq!(posted.status, 202, "{posted:?}");
    posted.json()["turn"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes a minute; the header says how to run it"]
async fn thousand_streams_and_two_hundred_messages_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let held = Arc::new(Semaphore::new(0));
    let config = Config::new().with_text("agent.toml", SETTINGS).unwrap();
    let host = AgentHost::configured(&config, folder.path()).unwrap();
    let serving = Serving::start(host.chat(Quick(held.clone()))).await;
    let [ann, bob] = [serving.ann(), serving.bob()];
    println!("at the start: {} MiB", memory());

    let mut streams = JoinSet::new();
    for number in 0..STREAMS {
        let turn = post(&ann, &format!("held{number}"), "hold").await;
        let events = ann.events(&format!("/api/turns/{turn}/events"), None).await;
        streams.spawn(events.all());
    }
    println!("with {STREAMS} open streams: {} MiB", memory());

    let mut posting = JoinSet::new();
    let mut ticks = interval(Duration::from_secs(1) / u32::try_from(RATE).unwrap());
    let places = Arc::new(Semaphore::new(IN_FLIGHT));
    let start = Instant::now();
    for number in 0..RATE * SECONDS {
        ticks.tick().await;
        let place = places.clone().acquire_owned().await.unwrap();
        let bob = bob.clone();
        posting.spawn(async move {
            let _place = place;
            let start = Instant::now();
            let turn = post(&bob, &format!("s{}", number % 500), "hi").await;
            let accepted = start.elapsed();
            let events = bob.events(&format!("/api/turns/{turn}/events"), None).await.all().await;
            assert_eq!(events.last().unwrap().data["outcome"]["text"], "Here.");
            (accepted, start.elapsed())
        });
    }
    let mut times = posting.join_all().await;
    println!(
        "{} messages in {:.1} s: {} MiB",
        times.len(),
        start.elapsed().as_secs_f64(),
        memory()
    );
    for (name, sorted) in [
        ("accepted", times.iter().map(|time| time.0).collect::<Vec<_>>()),
        ("answered", times.iter().map(|time| time.1).collect()),
    ] {
        let mut sorted = sorted;
        sorted.sort();
        println!(
            "{name}: median {:?}, p99 {:?}",
            sorted[sorted.len() / 2],
            sorted[sorted.len() * 99 / 100]
        );
    }
    times.clear();

    // Of another process, which has the files of their other ends.
    let mut idle = Command::new("python3")
        .args(["-c", SIT, &serving.address.port().to_string(), &IDLE.to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut all = String::new();
    BufReader::new(idle.stdout.take().unwrap())
        .read_line(&mut all)
        .await
        .unwrap();
    assert_eq!(all, "connected\n");
    sleep(Duration::from_secs(1)).await;
    println!("with {IDLE} idle connections: {} MiB", memory());
    post(&bob, "last", "hi").await;
    idle.kill().await.unwrap();

    held.close();
    let ended = streams.join_all().await;
    assert_eq!(ended.len(), STREAMS);
    for events in ended {
        assert_eq!(events.last().unwrap().data["outcome"]["text"], "Here.");
    }
    serving.stop().await;
}
