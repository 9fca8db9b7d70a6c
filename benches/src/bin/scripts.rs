//! Measures what the sandbox of scripts adds to a bare interpreter.
//!
//! Usage: `scripts [ROUNDS]` (30). Runs `print(1)` by `python3 -c` and in the sandbox, in turns, and
//! prints the medians in milliseconds and the median of their differences. Bare is the interpreter
//! that the sandbox starts.

use std::time::{Duration, Instant};

use rockbot_benches::median;
use rockbot_core::config::Config;
use rockbot_core::process::Command;
use rockbot_core::{BoxError, CallContext};
use rockbot_tools::scripts::{LocalScriptRunner, Script, ScriptRunner as _};
use serde_json::json;

const SCRIPT: &str = "print(1)";

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let rounds = std::env::args().nth(1).map_or(Ok(30), |text| text.parse::<usize>())?;
    let runner = LocalScriptRunner::from_config(&Config::new(), None)?;
    let cx = CallContext::new("bench");
    let bare = Command::new("/usr/bin/python3").args(["-c", SCRIPT]);
    let (mut floor, mut ours, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let begun = Instant::now();
        let output = bare.output(LIMIT).await?;
        let alone = begun.elapsed().as_secs_f64() * 1e3;
        assert_eq!(output.stdout, b"1\n");
        let begun = Instant::now();
        let output = runner.run(Script::new(SCRIPT).with_timeout(LIMIT), &cx).await?;
        let within = begun.elapsed().as_secs_f64() * 1e3;
        assert_eq!(output.stdout, "1\n");
        // The first round fills the caches of files.
        if round > 0 {
            floor.push(alone);
            ours.push(within);
            added.push(within - alone);
        }
    }
    println!(
        "{}",
        json!({"rounds": rounds, "bare_ms": median(floor), "sandbox_ms": median(ours), "added_ms": median(added)})
    );
    Ok(())
}
