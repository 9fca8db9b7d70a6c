//! The subsystem that records signals of quality.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{FeedbackEntry, FeedbackStore};
use rockbot_core::subsystem::{Declarations, PartCost, Parts, Running, RunningTask, Stage, Subsystem};
use rockbot_core::turn::{EndedTurn, TurnObserver};
use rockbot_core::{BoxError, Principal};
use tokio::sync::mpsc;

use super::entries::entries;

/// Capacity of the queue to a slow store. Further entries are dropped and logged.
const QUEUE: usize = 1_000;

type Queued = (Principal, FeedbackEntry);

/// A subsystem that records signals of an agent's quality: corrections, and failing tools.
///
/// Turns never wait for it: entries are queued, at most 1 000, and written by a background task.
/// It requires a [`FeedbackStore`]; an entry that cannot be written is dropped and logged. At
/// shutdown the queue is flushed; when the process is killed it is lost.
#[derive(Debug)]
pub struct FeedbackSignals {
    sender: mpsc::Sender<Queued>,
    queued: mpsc::Receiver<Queued>,
}

impl FeedbackSignals {
    /// Creates a recorder that writes to the host's feedback store.
    pub fn new() -> Self {
        let (sender, queued) = mpsc::channel(QUEUE);
        Self { sender, queued }
    }
}

impl Default for FeedbackSignals {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Subsystem for FeedbackSignals {
    fn name(&self) -> &str {
        "feedback signals"
    }

    fn stage(&self) -> Stage {
        Stage::Evaluation
    }

    fn declare(&mut self, needs: &mut Declarations) -> Result<(), BoxError> {
        needs.require::<dyn FeedbackStore>("add `Memory`, or call `.stores(…)` with a `Stores::with_feedback`");
        needs.cost(PartCost::on("feedback signals").with_switch("`Feedback.Enabled`"));
        needs.observe(Observer(self.sender.clone()));
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let store = parts.require::<dyn FeedbackStore>()?;
        let mut queued = self.queued;
        let (running, task) = RunningTask::new(async move |stop| {
            while let Some(Some((principal, entry))) = stop.run_until_cancelled(queued.recv()).await {
                write(&store, &principal, entry).await;
            }
            while let Ok((principal, entry)) = queued.try_recv() {
                write(&store, &principal, entry).await;
            }
        });
        tokio::spawn(task);
        Ok(Box::new(running))
    }
}

async fn write(store: &Arc<dyn FeedbackStore>, principal: &Principal, entry: FeedbackEntry) {
    if let Err(error) = store.append(principal, entry).await {
        tracing::warn!(%error, "feedback could not be written");
    }
}

#[derive(Debug)]
struct Observer(mpsc::Sender<Queued>);

impl TurnObserver for Observer {
    fn ended(&self, turn: &EndedTurn<'_>) {
        for entry in entries(turn) {
            if self.0.try_send((turn.request.principal.clone(), entry)).is_err() {
                tracing::warn!("feedback was dropped: its store is too slow, or has ended");
            }
        }
    }
}
