//! A subsystem with background work: it leaves a sign of life, a file in the data folder, every
//! few seconds.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rockbot::agent::{Declarations, Parts, Running, Subsystem};
use rockbot::prelude::*;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Tells how often the agent has left a sign of life.
#[derive(Deserialize, JsonSchema)]
struct CountSigns {}

/// The subsystem before the host starts.
#[derive(Debug)]
pub(crate) struct SignOfLife {
    every: Duration,
    signs: Arc<Mutex<Signs>>,
}

/// The signs so far.
#[derive(Debug, Default)]
struct Signs {
    count: u64,
    problem: Option<String>,
}

impl SignOfLife {
    pub(crate) fn new(every: Duration) -> Self {
        Self {
            every,
            signs: Arc::default(),
        }
    }
}

#[async_trait]
impl Subsystem for SignOfLife {
    fn name(&self) -> &str {
        "sign_of_life"
    }

    /// Declares, while the host is built, what the subsystem gives and needs; nothing runs yet.
    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
        if needs.parts().data_dir().is_none() {
            return Err("it needs a folder for its file: call `.data_dir(…)`".into());
        }
        let signs = self.signs.clone();
        let count = move |_: CountSigns| {
            let count = read(&signs, |signs| signs.count);
            async move { format!("{count} signs of life") }
        };
        needs.tool(tool("count_signs_of_life", count).pure().own_output());
        Ok(())
    }

    /// Starts the background task when the host starts.
    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let file = parts.data_dir().ok_or("the data folder is gone")?.join("sign_of_life");
        let signs = self.signs;
        let stop = Arc::new(Notify::new());
        let mut task = JoinSet::new();
        task.spawn(leave_signs(self.every, file, signs.clone(), stop.clone()));
        let task = tokio::sync::Mutex::new(task);
        Ok(Box::new(Living { signs, stop, task }))
    }
}

/// The subsystem while the host runs.
struct Living {
    signs: Arc<Mutex<Signs>>,
    stop: Arc<Notify>,
    /// The background task; dropping the set aborts it, even when `stop` is never called.
    task: tokio::sync::Mutex<JoinSet<()>>,
}

#[async_trait]
impl Running for Living {
    /// Cancels the task, and waits until it has ended.
    async fn stop(&self) {
        self.stop.notify_one();
        self.task.lock().await.join_next().await;
    }

    /// Reports health; an error shows up in `/readyz`.
    fn check(&self) -> Result<(), String> {
        read(&self.signs, |signs| signs.problem.clone().map_or(Ok(()), Err))
    }
}

async fn leave_signs(every: Duration, file: PathBuf, signs: Arc<Mutex<Signs>>, stop: Arc<Notify>) {
    let mut ticks = tokio::time::interval(every);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let problem = leave_sign(&file);
                read(&signs, |signs| {
                    signs.count += 1;
                    signs.problem = problem;
                });
                metrics::counter!("full_agent.signs_of_life").increment(1);
            }
            () = stop.notified() => break,
        }
    }
    // A missing file tells a supervisor that the agent ended in good order.
    let _ = std::fs::remove_file(&file);
    tracing::info!(signs = read(&signs, |signs| signs.count), "no more signs of life");
}

/// Rewrites the file, and returns the problem if that fails.
fn leave_sign(file: &Path) -> Option<String> {
    let error = std::fs::write(file, format!("{}\n", std::process::id())).err()?;
    Some(format!("`{}` cannot be written: {error}", file.display()))
}

fn read<T>(signs: &Mutex<Signs>, look: impl FnOnce(&mut Signs) -> T) -> T {
    // Every update is a single assignment, so a poisoned lock still holds a consistent value.
    look(&mut signs.lock().unwrap_or_else(PoisonError::into_inner))
}
