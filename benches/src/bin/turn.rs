//! Measures the agent loop, for a harness that compares frameworks.
//!
//! Usage: `turn [--floor | --policies | --gateway | --host | --below | --beside] BASE_URL
//! CONCURRENCY CONVERSATIONS TOOLS STREAM`. Prints one JSON line. `--floor` is the loop by hand,
//! which does nothing else. `TURNS` in the environment sets the number of tool turns in a
//! conversation (default 2). The conversations of `--host` begin with three answers: a server
//! that counts answers must be started with three tool turns more. `--below` runs each
//! conversation below a call of another agent, `--beside` after such a call.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rockbot_benches::floor::Floor;
use rockbot_benches::ours::{Extras, TOOL_RUNS, answer, host};
use rockbot_benches::{USER, load, nested, process_usage, whole};
use tokio::task::LocalSet;

fn argument<T: std::str::FromStr>(index: usize, default: T) -> T {
    std::env::args()
        .filter(|argument| !argument.starts_with("--"))
        .nth(index)
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn has(flag: &str) -> bool {
    std::env::args().any(|argument| argument == flag)
}

fn name(extras: Extras) -> String {
    let flags = [
        ("policies", extras.policies),
        ("gateway", extras.gateway),
        ("host", extras.whole),
    ];
    let flags = flags.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name);
    std::iter::once("rockbot").chain(flags).collect::<Vec<_>>().join(" ")
}

fn session(round: &str, index: usize) -> String {
    format!("{round}-{index}")
}

/// Writes the files of a whole host, for all rounds, and returns the users' messages.
async fn furnish(data: &Path, warm: usize, conversations: usize) -> Vec<String> {
    let sessions = [("warm", warm), ("run", conversations)].into_iter();
    let sessions = sessions.flat_map(|(round, total)| (0..total).map(move |index| session(round, index)));
    whole::furnish(data, sessions).await.expect("the files can be written");
    whole::messages()
}

/// The length and the form of a run.
#[derive(Clone, Copy)]
struct Work {
    concurrency: usize,
    conversations: usize,
    warm: usize,
    tools: usize,
    turns: usize,
    stream: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let base: String = argument(1, "http://127.0.0.1:8399/v1".to_owned());
    let concurrency = argument(2, 1);
    let conversations = argument(3, 500);
    let turns = std::env::var("TURNS").ok().and_then(|turns| turns.parse().ok());
    let work = Work {
        concurrency,
        conversations,
        warm: (conversations / 10)
            .max(concurrency)
            .min(conversations.max(concurrency)),
        tools: argument(4, 8),
        turns: turns.unwrap_or(2) + 1,
        stream: argument(5, 0) == 1,
    };
    if has("--floor") {
        by_hand(&base, work).await;
    } else if has("--below") || has("--beside") {
        by_two_agents(&base, work, has("--below")).await;
    } else {
        by_framework(&base, work).await;
    }
}

async fn by_hand(base: &str, work: Work) {
    let floor = Floor::new(base, work.tools, work.stream);
    let conversation = move |_: &'static str, _: usize| {
        let floor = floor.clone();
        async move { floor.conversation().await }
    };
    LocalSet::new().run_until(measure("floor", work, conversation)).await;
}

async fn by_two_agents(base: &str, work: Work, is_below: bool) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let host = Arc::new(nested::host(base, work.tools, data.path(), is_below));
    host.start().await.expect("the host starts");
    let conversation = move |round: &'static str, index: usize| {
        let host = host.clone();
        async move { nested::answer(&host, session(round, index), is_below).await }
    };
    let name = if is_below { "rockbot below" } else { "rockbot beside" };
    LocalSet::new().run_until(measure(name, work, conversation)).await;
}

async fn by_framework(base: &str, work: Work) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let extras = Extras {
        policies: has("--policies"),
        gateway: has("--gateway"),
        whole: has("--host"),
    };
    let messages = if extras.whole {
        furnish(data.path(), work.warm, work.conversations).await
    } else {
        vec![USER.to_owned()]
    };
    let host = host(base, work.tools, data.path(), extras);
    host.start().await.expect("the host starts");
    let agent = host.agent().clone();
    let messages = Arc::new(messages);
    let conversation = move |round: &'static str, index: usize| {
        let agent = agent.clone();
        let messages = messages.clone();
        async move {
            answer(
                &agent,
                session(round, index),
                &messages[index % messages.len()],
                work.stream,
            )
            .await
        }
    };
    LocalSet::new()
        .run_until(measure(&name(extras), work, conversation))
        .await;
}

/// Runs the conversations, after a few that warm up, and prints the cost.
async fn measure<F, Fut>(name: &str, work: Work, conversation: F)
where
    F: Fn(&'static str, usize) -> Fut + Clone + 'static,
    Fut: Future<Output = String> + 'static,
{
    let run = |total, round| {
        let conversation = conversation.clone();
        load::run(total, work.concurrency, move |index| conversation(round, index))
    };
    run(work.warm, "warm").await;
    let (cpu_before, _) = process_usage();
    let started = Instant::now();
    let runs = TOOL_RUNS.load(Ordering::Relaxed);
    let mut latencies = run(work.conversations, "run").await;
    let wall = started.elapsed().as_secs_f64();
    let (cpu, rss) = process_usage();
    latencies.sort_by(f64::total_cmp);
    let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize];
    let round = |value: f64| (value * 10.0).round() / 10.0;
    let line = serde_json::json!({
        "impl": name, "conc": work.concurrency, "tools": work.tools, "stream": work.stream,
        "convs": work.conversations, "turns_per_conv": work.turns,
        "tool_calls": TOOL_RUNS.load(Ordering::Relaxed) - runs,
        "conv_per_s": round(work.conversations as f64 / wall),
        "cpu_us_per_turn": round((cpu - cpu_before) * 1e6 / (work.conversations * work.turns) as f64),
        "p50_ms": at(0.5), "p99_ms": at(0.99), "peak_rss_mib": round(rss),
    });
    println!("{line}");
}
