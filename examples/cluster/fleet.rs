//! The processes of the agent: started, killed, stopped for a while.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rockbot::prelude::*;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::LEASE;
use crate::arguments::Arguments;

/// The line that a process prints when it is ready.
pub(crate) const READY: &str = "ready";

/// The beginning of a line that a process prints when it has taken turns over.
pub(crate) const TAKEN_OVER: &str = "turns taken over: ";

/// Time that a process has to become ready, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Attempts to start a process.
const STARTS: u32 = 30;

/// The running processes.
pub(crate) struct Fleet {
    arguments: Arguments,
    children: Vec<Child>,
    /// The number of turns that processes took over.
    taken_over: Arc<AtomicUsize>,
    pub(crate) kills: usize,
    pub(crate) pauses: usize,
}

impl Fleet {
    /// Starts all processes.
    pub(crate) async fn start(arguments: &Arguments) -> Result<Self, BoxError> {
        let mut fleet = Self {
            arguments: arguments.clone(),
            children: Vec::new(),
            taken_over: Arc::default(),
            kills: 0,
            pauses: 0,
        };
        for _ in 0..arguments.processes {
            let child = fleet.spawn().await?;
            fleet.children.push(child);
        }
        Ok(fleet)
    }

    /// Starts a process, and waits until it is ready.
    async fn spawn(&self) -> Result<Child, BoxError> {
        let arguments = &self.arguments;
        let network = arguments.network.as_deref().unwrap_or_default();
        let mut child = Command::new(std::env::current_exe()?)
            .args([
                "--part",
                "agent",
                "--bus",
                &arguments.bus,
                "--database",
                &arguments.database,
            ])
            .args(["--network", network, "--notes", &arguments.notes])
            .args(["--work", &arguments.work.as_millis().to_string()])
            // The process ends when this pipe does, however this program ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().ok_or("a process has no output")?;
        let mut lines = BufReader::new(output).lines();
        if timeout(PATIENCE, lines.next_line()).await??.as_deref() != Some(READY) {
            return Err("a process of the agent does not start".into());
        }
        let taken_over = self.taken_over.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let count = line.strip_prefix(TAKEN_OVER).and_then(|count| count.parse().ok());
                taken_over.fetch_add(count.unwrap_or(0), Ordering::Relaxed);
            }
        });
        Ok(child)
    }

    /// Kills and stops processes, as the arguments ask, for ever.
    pub(crate) async fn trouble(&mut self) -> Result<(), BoxError> {
        if self.arguments.pauses {
            self.pause_one().await?;
        }
        let Some(every) = self.arguments.kill_every else {
            return std::future::pending().await;
        };
        loop {
            sleep(every).await;
            self.kill_one().await?;
        }
    }

    /// Stops the last process for longer than its lease.
    async fn pause_one(&mut self) -> Result<(), BoxError> {
        let Some(id) = self.children.last().and_then(Child::id) else {
            return Ok(());
        };
        for (signal, time) in [("-STOP", LEASE * 2), ("-CONT", Duration::ZERO)] {
            let sent = Command::new("kill").args([signal, &id.to_string()]).status().await?;
            if !sent.success() {
                return Err("a process cannot be stopped".into());
            }
            sleep(time).await;
        }
        self.pauses += 1;
        Ok(())
    }

    /// Kills the first process, and starts another one.
    async fn kill_one(&mut self) -> Result<(), BoxError> {
        self.children.remove(0).kill().await?;
        self.kills += 1;
        let child = self.respawn().await?;
        self.children.push(child);
        Ok(())
    }

    /// Starts a process again, as a supervisor does: the servers may be away for a while.
    async fn respawn(&self) -> Result<Child, BoxError> {
        for _ in 1..STARTS {
            if let Ok(child) = self.spawn().await {
                return Ok(child);
            }
            sleep(Duration::from_secs(1)).await;
        }
        self.spawn().await
    }

    /// Tells the processes to end, and waits for them. Returns the number of turns that they took
    /// over.
    pub(crate) async fn end(self) -> Result<usize, BoxError> {
        for mut child in self.children {
            drop(child.stdin.take());
            let status = timeout(PATIENCE, child.wait()).await??;
            if !status.success() {
                return Err(format!("a process failed: {status}").into());
            }
        }
        Ok(self.taken_over.load(Ordering::Relaxed))
    }
}

/// Waits until the standard input ends.
pub(crate) async fn until_told_to_end() {
    let mut rest = Vec::new();
    // An input that cannot be read has ended.
    let _ = tokio::io::stdin().read_to_end(&mut rest).await;
}
