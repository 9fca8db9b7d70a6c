//! Measures what the agent loop adds to the time to the first token.
//!
//! Usage: `first_token [ROUNDS]` (default 500). Loop and floor ask a mock server in turn, one
//! conversation in flight. Prints one JSON line of medians, in milliseconds.

use std::time::{Duration, Instant};

use rockbot_benches::floor::Floor;
use rockbot_benches::ours::{Extras, host};
use rockbot_benches::{USER, median, mock};
use rockbot_core::turn::TurnProgress;
use rockbot_host::Agent;

/// Number of tools of both sides.
const TOOLS: usize = 8;

/// Rounds that do not count.
const WARM: usize = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rounds: usize = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(500);
    let base = format!("http://{}/v1", mock::start(0));
    let data = tempfile::tempdir().expect("a temporary folder");
    let floor = Floor::new(&base, TOOLS, true);
    let host = host(&base, TOOLS, data.path(), Extras::default());
    host.start().await.expect("the host starts");
    let mut by_hand = Vec::new();
    let mut by_framework = Vec::new();
    for round in 0..WARM + rounds {
        let times = [floor.first_token().await, first_token(host.agent(), round).await];
        if round >= WARM {
            by_hand.push(milliseconds(times[0]));
            by_framework.push(milliseconds(times[1]));
        }
    }
    let floor = median(by_hand);
    let ours = median(by_framework);
    let line = serde_json::json!({"rounds": rounds, "floor": floor, "ours": ours, "added": ours - floor});
    println!("{line}");
}

/// Asks the agent, and returns the time to the first text of its answer, which is read to its end.
async fn first_token(agent: &Agent, round: usize) -> Duration {
    let started = Instant::now();
    let mut turn = agent.stream(format!("s{round}"), USER);
    let mut first = None;
    while let Some(progress) = turn.next().await {
        if let TurnProgress::Delta(_) = progress.expect("progress") {
            first.get_or_insert_with(|| started.elapsed());
        }
    }
    first.expect("an answer has text")
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
