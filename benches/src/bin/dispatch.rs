//! Measures tool dispatch, for a harness that compares frameworks.
//!
//! Usage: `dispatch TOOLS ITERATIONS [floor | ours]`. Prints one JSON line for each
//! implementation; with a name only that one runs.

use rockbot_benches::dispatch::Bench;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let argument = |index, default| {
        std::env::args()
            .nth(index)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let bench = Bench::new(argument(1, 64), argument(2, 300_000));
    let only = std::env::args().nth(3);
    let runs = |name: &str| only.as_ref().is_none_or(|only| only == name);
    if runs("floor") {
        print("rockbot: bare dyn call with context", bench.floor().await);
    }
    if runs("ours") {
        print("rockbot: registry, guard, typed tool", bench.ours().await);
    }
}

fn print(name: &str, nanoseconds: f64) {
    println!("{}", serde_json::json!({ "impl": name, "ns_per_call": nanoseconds }));
}
