//! Measures tool dispatch, for a harness that compares frameworks.
//!
//! Usage: `dispatch TOOLS ITERATIONS`. Prints one JSON line for each implementation.

use rockbot_benches::dispatch::nanoseconds;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let argument = |index, default| {
        std::env::args()
            .nth(index)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (floor, ours) = nanoseconds(argument(1, 64), argument(2, 300_000)).await;
    println!(
        "{}",
        serde_json::json!({ "impl": "rockbot: bare dyn call with context", "ns_per_call": floor })
    );
    println!(
        "{}",
        serde_json::json!({ "impl": "rockbot: registry, guard, typed tool", "ns_per_call": ours })
    );
}
