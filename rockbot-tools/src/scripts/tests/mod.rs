//! Tests of scripts: of the sandbox where there is one, of the tool and the subsystem everywhere.

mod conformance;
mod escapes;
mod faults;
mod monty;
mod packages;
mod subsystem;
mod tool;
mod wire;
mod work;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rockbot_core::CallContext;

use super::canary::{is_running, measure};
use super::local::{Isolation, LocalScriptRunner};
use super::packages::PackageCache;
use super::runner::{Script, ScriptOutput, ScriptRunner};

/// A runner of this machine whose processes are known by a number in their command lines: its
/// limit of memory.
struct Local {
    runner: LocalScriptRunner,
    marker: String,
}

impl Local {
    fn new(isolation: Isolation) -> Self {
        Self::with_memory(isolation, marked_memory())
    }

    fn with_memory(isolation: Isolation, memory: u64) -> Self {
        let packages = PackageCache {
            folder: None,
            index: None,
        };
        let runner = LocalScriptRunner {
            isolation,
            memory,
            packages,
            work: None,
        };
        Self {
            runner,
            marker: memory.to_string(),
        }
    }

    async fn run(&self, script: &str) -> ScriptOutput {
        self.run_for(script, Duration::from_secs(60)).await
    }

    async fn run_for(&self, script: &str, limit: Duration) -> ScriptOutput {
        let script = Script::new(script).with_timeout(limit);
        self.runner.run(script, &context()).await.unwrap()
    }

    /// Waits until a process of the runner runs.
    async fn runs(&self) {
        wait_for(|| is_running(&self.marker)).await;
    }

    /// Waits until no process of the runner is left.
    async fn is_gone(&self) {
        wait_for(|| !is_running(&self.marker)).await;
    }
}

/// Returns a limit of memory that no other runner of a test has.
fn marked_memory() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = u64::from(std::process::id()) * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
    (512 << 20) + number
}

fn context() -> CallContext {
    CallContext::new("s")
}

async fn wait_for(is_so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it does not come to that");
}

/// Returns a sandbox, or `None` with a reason on the output where there is none.
async fn sandbox() -> Option<Local> {
    let local = Local::new(Isolation::Bubblewrap);
    match measure(&local.runner).await {
        Ok(_) => Some(local),
        Err(reason) => {
            skip(&reason);
            None
        }
    }
}

/// Says why a test is skipped, or fails where none may be, and where a sandbox is there and does
/// not hold.
fn skip(reason: &str) {
    assert!(!reason.contains("guarantees"), "{reason}");
    let is_required = std::env::var("ROCKBOT_TEST_REQUIRE").is_ok_and(|required| required == "all");
    assert!(!is_required, "{reason}");
    println!("SKIPPED: {reason}");
}
