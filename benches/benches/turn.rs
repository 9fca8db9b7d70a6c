//! Measures whole turns over a hand-written loop, both against a mock model server on loopback.
//! `cargo bench -p rockbot-benches --bench turn`.
//!
//! A figure is the CPU time of the asking thread for each model turn, in microseconds; the server
//! runs on a thread of its own. Floor and framework alternate, so that other load on the machine
//! affects both.

use rockbot_benches::floor::Floor;
use rockbot_benches::ours::Extras;
use rockbot_benches::{USER, load, median, mock, ours, thread_seconds};
use tokio::task::LocalSet;

const ROUNDS: usize = 7;

/// One row of the table.
struct Workload {
    name: &'static str,
    concurrency: usize,
    conversations: usize,
    tools: usize,
    turns: usize,
    stream: bool,
}

const fn row(
    name: &'static str,
    concurrency: usize,
    conversations: usize,
    tools: usize,
    turns: usize,
    stream: bool,
) -> Workload {
    Workload {
        name,
        concurrency,
        conversations,
        tools,
        turns,
        stream,
    }
}

const WORKLOADS: [Workload; 8] = [
    row("1 at a time", 1, 300, 8, 2, false),
    row("16 at a time", 16, 600, 8, 2, false),
    row("256 at a time", 256, 768, 8, 2, false),
    row("1 tool", 16, 300, 1, 2, false),
    row("64 tools", 16, 300, 64, 2, false),
    row("256 tools", 16, 300, 256, 2, false),
    row("20 tool turns", 16, 60, 8, 20, false),
    row("streaming", 16, 300, 8, 2, true),
];

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!(
        "{:>14}  {:>9}  {:>9}  {:>6}",
        "workload", "floor us", "ours us", "ratio"
    );
    for workload in &WORKLOADS {
        let (floor, ours) = LocalSet::new().run_until(measure(workload)).await;
        println!(
            "{:>14}  {floor:>9.1}  {ours:>9.1}  {:>6.2}",
            workload.name,
            ours / floor
        );
    }
}

async fn measure(workload: &Workload) -> (f64, f64) {
    let base = format!("http://{}/v1", mock::start(workload.turns));
    let data = tempfile::tempdir().expect("a temporary folder");
    let host = ours::host(&base, workload.tools, data.path(), Extras::default());
    let agent = host.agent().clone();
    let floor = Floor::new(&base, workload.tools, workload.stream);
    let stream = workload.stream;
    let floor = move |_| {
        let floor = floor.clone();
        async move { floor.conversation().await }
    };
    let session = std::rc::Rc::new(std::cell::Cell::new(0_u64));
    let ours = move |_| {
        let agent = agent.clone();
        session.set(session.get() + 1);
        let session = format!("session-{}", session.get());
        async move { ours::answer(&agent, session, USER, stream).await }
    };
    let mut floors = Vec::new();
    let mut all_ours = Vec::new();
    for _ in 0..=ROUNDS {
        floors.push(cpu(workload, floor.clone()).await);
        all_ours.push(cpu(workload, ours.clone()).await);
    }
    // The first round warms up.
    (median(floors.split_off(1)), median(all_ours.split_off(1)))
}

/// Measures the CPU time of this thread for each model turn, in microseconds.
async fn cpu<F, Fut>(workload: &Workload, conversation: F) -> f64
where
    F: Fn(usize) -> Fut + Clone + 'static,
    Fut: Future<Output = String> + 'static,
{
    let before = thread_seconds();
    load::run(workload.conversations, workload.concurrency, conversation).await;
    let turns = workload.conversations * (workload.turns + 1);
    (thread_seconds() - before) * 1e6 / turns as f64
}
