//! The parts of an example as processes, which end with the one that started them.

use std::process::Stdio;
use std::time::Duration;

use rockbot::prelude::*;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time;

/// The line that a part prints when it is ready.
pub(crate) const READY: &str = "ready";

/// Time that a process has to become ready, or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// The running processes.
pub(crate) struct Processes(Vec<Child>);

impl Processes {
    /// Starts this program once for each part, and waits until all are ready.
    pub(crate) async fn start(parts: &[&str], url: &str, network: &str) -> Result<Self, BoxError> {
        let mut children = Vec::new();
        for part in parts {
            let mut child = Command::new(std::env::current_exe()?)
                .args(["--part", *part, "--bus", url, "--network", network])
                // The part ends when this pipe does, however this process ends.
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()?;
            let output = child.stdout.take().ok_or("a process has no output")?;
            let line = time::timeout(PATIENCE, BufReader::new(output).lines().next_line()).await??;
            if line.as_deref() != Some(READY) {
                return Err(format!("the {part} does not start").into());
            }
            eprintln!("the {part} is process {}", child.id().unwrap_or_default());
            children.push(child);
        }
        Ok(Self(children))
    }

    /// Tells the processes to end, and waits for them.
    pub(crate) async fn end(self) -> Result<(), BoxError> {
        for mut child in self.0 {
            drop(child.stdin.take());
            let status = time::timeout(PATIENCE, child.wait()).await??;
            if !status.success() {
                return Err(format!("a process failed: {status}").into());
            }
        }
        Ok(())
    }
}

/// Waits until the standard input ends.
pub(crate) async fn until_told_to_end() {
    let mut rest = Vec::new();
    // An input that cannot be read has ended.
    let _ = tokio::io::stdin().read_to_end(&mut rest).await;
}
