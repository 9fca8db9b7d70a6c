//! The agent loop, for a harness that measures frameworks side by side.
//!
//! Usage: `w1 [--policies] [--gateway] BASE_URL CONCURRENCY CONVERSATIONS TOOLS STREAM`. Prints one JSON line. `TURNS`
//! in the environment says how many tool turns a conversation has (default 2).

use std::sync::atomic::Ordering;
use std::time::Instant;

use rockbot_benches::ours::{Extras, TOOL_RUNS, conversation, host};
use rockbot_benches::{load, process_usage};
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

fn name(extras: Extras) -> &'static str {
    match (extras.policies, extras.gateway) {
        (false, false) => "rockbot",
        (true, false) => "rockbot, policies",
        (false, true) => "rockbot, gateway",
        (true, true) => "rockbot, policies and gateway",
    }
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
    let extras = Extras {
        policies: has("--policies"),
        gateway: has("--gateway"),
    };
    let host = host(&base, tools, data.path(), extras);
    let agent = host.agent().clone();
    let run = move |total, round: &'static str| {
        let agent = agent.clone();
        load::run(total, concurrency, move |index| {
            let agent = agent.clone();
            async move { conversation(&agent, format!("{round}-{index}"), stream).await }
        })
    };
    LocalSet::new()
        .run_until(async move {
            run((conversations / 10).max(concurrency).min(conversations.max(concurrency)), "warm").await;
            let (cpu_before, _) = process_usage();
            let (started, runs) = (Instant::now(), TOOL_RUNS.load(Ordering::Relaxed));
            let mut latencies = run(conversations, "run").await;
            let (wall, (cpu, rss)) = (started.elapsed().as_secs_f64(), process_usage());
            latencies.sort_by(f64::total_cmp);
            let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize];
            let round = |value: f64| (value * 10.0).round() / 10.0;
            let line = serde_json::json!({
                "impl": name(extras), "conc": concurrency, "tools": tools, "stream": stream, "convs": conversations, "turns_per_conv": turns,
                "tool_calls": TOOL_RUNS.load(Ordering::Relaxed) - runs,
                "conv_per_s": round(conversations as f64 / wall),
                "cpu_us_per_turn": round((cpu - cpu_before) * 1e6 / (conversations * turns) as f64),
                "p50_ms": at(0.5), "p99_ms": at(0.99), "peak_rss_mib": round(rss),
            });
            println!("{line}");
        })
        .await;
}
