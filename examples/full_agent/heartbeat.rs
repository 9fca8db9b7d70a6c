//! A subsystem with background work: it writes a heartbeat file into the data folder every few seconds.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rockbot::agent::{Declarations, Parts, Running, Subsystem};
use rockbot::prelude::*;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Tells how often the agent's heart has beaten.
#[derive(Deserialize, JsonSchema)]
struct CountHeartbeats {}

/// The subsystem before the host starts.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    every: Duration,
    pulse: Arc<Mutex<Pulse>>,
}

/// The state of the heartbeat.
#[derive(Debug, Default)]
struct Pulse {
    beats: u64,
    problem: Option<String>,
}

impl Heartbeat {
    pub(crate) fn new(every: Duration) -> Self {
        Self {
            every,
            pulse: Arc::default(),
        }
    }
}

#[async_trait]
impl Subsystem for Heartbeat {
    fn name(&self) -> &str {
        "heartbeat"
    }

    /// Declares, while the host is built, what the subsystem gives and needs; nothing runs yet.
    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
        if needs.parts().data_dir().is_none() {
            return Err("it needs a folder for its sign of life: call `.data_dir(…)`".into());
        }
        let pulse = self.pulse.clone();
        let count = move |_: CountHeartbeats| {
            let beats = read(&pulse, |pulse| pulse.beats);
            async move { format!("{beats} heartbeats") }
        };
        needs.tool(tool("count_heartbeats", count).pure().own_output());
        Ok(())
    }

    /// Starts the background task when the host starts.
    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let file = parts.data_dir().ok_or("the data folder is gone")?.join("heartbeat");
        let (pulse, stop) = (self.pulse, Arc::new(Notify::new()));
        let mut task = JoinSet::new();
        task.spawn(beat(self.every, file, pulse.clone(), stop.clone()));
        let task = tokio::sync::Mutex::new(task);
        Ok(Box::new(Beating { pulse, stop, task }))
    }
}

/// The subsystem while the host runs.
struct Beating {
    pulse: Arc<Mutex<Pulse>>,
    stop: Arc<Notify>,
    /// The background task; dropping the set aborts it, even when `stop` is never called.
    task: tokio::sync::Mutex<JoinSet<()>>,
}

#[async_trait]
impl Running for Beating {
    /// Cancels the task, and waits until it has ended.
    async fn stop(&self) {
        self.stop.notify_one();
        self.task.lock().await.join_next().await;
    }

    /// Reports health; an error shows up in `/readyz`.
    fn check(&self) -> Result<(), String> {
        read(&self.pulse, |pulse| pulse.problem.clone().map_or(Ok(()), Err))
    }
}

async fn beat(every: Duration, file: PathBuf, pulse: Arc<Mutex<Pulse>>, stop: Arc<Notify>) {
    let mut ticks = tokio::time::interval(every);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let problem = leave_sign(&file);
                read(&pulse, |pulse| {
                    pulse.beats += 1;
                    pulse.problem = problem;
                });
                metrics::counter!("full_agent.heartbeats").increment(1);
            }
            () = stop.notified() => break,
        }
    }
    // A missing file tells a supervisor that the agent ended in good order.
    let _ = std::fs::remove_file(&file);
    tracing::info!(beats = read(&pulse, |pulse| pulse.beats), "the heart has stopped");
}

/// Rewrites the file, and returns the problem if that fails.
fn leave_sign(file: &Path) -> Option<String> {
    let error = std::fs::write(file, format!("{}\n", std::process::id())).err()?;
    Some(format!("`{}` cannot be written: {error}", file.display()))
}

fn read<T>(pulse: &Mutex<Pulse>, look: impl FnOnce(&mut Pulse) -> T) -> T {
    // Every update is a single assignment, so a poisoned lock still holds a consistent value.
    look(&mut pulse.lock().unwrap_or_else(PoisonError::into_inner))
}
