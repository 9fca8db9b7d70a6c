//! The agent loop: conversations against a mock model server, with the whole turn engine and its journal on disk.
//!
//! Usage: `w1 BASE_URL CONCURRENCY CONVERSATIONS TOOLS STREAM`. Prints one JSON line. `TURNS` in the environment
//! says how many tool turns a conversation has (default 2).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use futures_util::StreamExt;
use rockbot_core::store::{ConversationMemory, ConversationTurn, StoreError};
use rockbot_core::tool::tool;
use rockbot_core::turn::TurnProgress;
use rockbot_core::{Principal, Secret, SessionId};
use rockbot_host::{Agent, AgentHost};
use rockbot_llm::OpenAiChat;
use tokio::task::LocalSet;

const USER: &str = "Please work out the answer with the tools and report it.";
static TOOL_RUNS: AtomicUsize = AtomicUsize::new(0);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Args {
    /// a small integer
    a: i64,
    /// some text
    b: String,
}

/// This workload is about the loop: nothing is remembered.
#[derive(Debug)]
struct NoMemory;

#[async_trait]
impl ConversationMemory for NoMemory {
    async fn append(&self, _: &Principal, _: &SessionId, _: Vec<ConversationTurn>) -> Result<(), StoreError> {
        Ok(())
    }
    async fn recent(&self, _: &Principal, _: &SessionId, _: usize) -> Result<Vec<ConversationTurn>, StoreError> {
        Ok(Vec::new())
    }
    async fn clear(&self, _: &Principal, _: &SessionId) -> Result<(), StoreError> {
        Ok(())
    }
    async fn sessions(&self, _: &Principal) -> Result<Vec<SessionId>, StoreError> {
        Ok(Vec::new())
    }
}

fn argument<T: std::str::FromStr>(index: usize, default: T) -> T {
    std::env::args()
        .nth(index)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn instructions() -> String {
    let mut text = String::from("You are a helpful agent. ");
    while text.len() < 1024 {
        text.push_str("Follow the rules of the house. ");
    }
    text
}

fn host(base: &str, tools: usize, data: &std::path::Path) -> AgentHost {
    let chat = OpenAiChat::builder(base, "mock-1")
        .api_key(Secret::from("test"))
        .build()
        .expect("the endpoint is a URL");
    let builder = AgentHost::builder("bench")
        .instructions(instructions())
        .chat(chat)
        .memory(NoMemory);
    let builder = if std::env::var_os("IN_MEMORY").is_some() {
        builder
    } else {
        builder.data_dir(data)
    };
    let tools = (0..tools).map(|index| {
        let name = format!("tool_{index}");
        let run = |args: Args| async move {
            TOOL_RUNS.fetch_add(1, Ordering::Relaxed);
            format!("result {} len {}", args.a, args.b.len())
        };
        let text = format!(
            "Tool number {index}: does a small deterministic thing with its two arguments and returns a short text."
        );
        tool(&name, run).pure().description(text)
    });
    tools
        .fold(builder, |builder, tool| builder.tool(tool))
        .build()
        .expect("the host is complete")
}

async fn conversation(agent: &Agent, session: String, stream: bool) -> String {
    if !stream {
        return agent.ask(session, USER).await.expect("an answer").text;
    }
    let mut turn = agent.stream(session, USER);
    let mut text = String::new();
    while let Some(progress) = turn.next().await {
        match progress.expect("progress") {
            TurnProgress::Delta(delta) => text.push_str(&delta),
            TurnProgress::Final(outcome) => assert_eq!(outcome.text, text, "the pieces make the answer"),
            _ => {}
        }
    }
    text
}

/// CPU seconds of this process so far, and the most memory it had, in MiB.
fn usage() -> (f64, f64) {
    // SAFETY: `getrusage` fills the struct that it is given; all its fields are plain numbers.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (
        seconds(usage.ru_utime) + seconds(usage.ru_stime),
        usage.ru_maxrss as f64 / 1024.0,
    )
}

/// Runs `total` conversations, `concurrency` at a time; returns how long each took, in milliseconds.
async fn run(agent: &Agent, total: usize, concurrency: usize, stream: bool, round: &'static str) -> Vec<f64> {
    let left = Rc::new(Cell::new(total));
    let latencies = Rc::new(RefCell::new(Vec::with_capacity(total)));
    let workers = (0..concurrency).map(|_| {
        let (left, latencies, agent) = (left.clone(), latencies.clone(), agent.clone());
        tokio::task::spawn_local(async move {
            while left.get() > 0 {
                left.set(left.get() - 1);
                let started = Instant::now();
                let text = conversation(&agent, format!("{round}-{}", left.get()), stream).await;
                assert!(text.starts_with("FINAL"), "{text}");
                latencies.borrow_mut().push(started.elapsed().as_secs_f64() * 1e3);
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.expect("a worker does not fail");
    }
    latencies.take()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let base: String = argument(1, "http://127.0.0.1:8399/v1".to_owned());
    let (concurrency, conversations, tools, stream) =
        (argument(2, 1), argument(3, 500), argument(4, 8), argument(5, 0) == 1);
    let turns = std::env::var("TURNS")
        .ok()
        .and_then(|turns| turns.parse().ok())
        .unwrap_or(2)
        + 1;
    let data = tempfile::tempdir().expect("a temporary folder");
    let host = host(&base, tools, data.path());
    let agent = host.agent().clone();
    LocalSet::new()
        .run_until(async move {
            run(&agent, (conversations / 10).max(concurrency).min(conversations), concurrency, stream, "warm").await;
            let (cpu_before, _) = usage();
            let (started, runs) = (Instant::now(), TOOL_RUNS.load(Ordering::Relaxed));
            let mut latencies = run(&agent, conversations, concurrency, stream, "run").await;
            let (wall, (cpu, rss)) = (started.elapsed().as_secs_f64(), usage());
            latencies.sort_by(f64::total_cmp);
            let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize];
            let round = |value: f64| (value * 10.0).round() / 10.0;
            let line = serde_json::json!({
                "impl": "rockbot", "conc": concurrency, "tools": tools, "stream": stream, "convs": conversations, "turns_per_conv": turns,
                "tool_calls": TOOL_RUNS.load(Ordering::Relaxed) - runs,
                "conv_per_s": round(conversations as f64 / wall),
                "cpu_us_per_turn": round((cpu - cpu_before) * 1e6 / (conversations * turns) as f64),
                "p50_ms": at(0.5), "p99_ms": at(0.99), "peak_rss_mib": round(rss),
            });
            println!("{line}");
        })
        .await;
}
