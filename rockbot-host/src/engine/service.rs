//! Turns as a tower service.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use rockbot_core::BoxError;
use rockbot_core::turn::{ProgressSink, TurnOutcome, TurnRequest};

use super::{LiveTurn, News, TurnEngine, TurnError};
use crate::layer::{Layers, Stack, call};

/// A message and whoever listens to its turn: what tower layers on turns see.
#[derive(Debug, Clone)]
pub struct TurnCall {
    /// The message.
    pub request: TurnRequest,
    /// Whoever listens.
    pub progress: ProgressSink,
}

/// Runs turns: the user's layers, then the engine.
///
/// A call resolves when the turn has ended or waits for a person. Dropping the last call that waits for a turn
/// cancels it; what a mutating tool call does by then is still waited for and recorded.
#[derive(Debug, Clone)]
pub struct TurnService {
    engine: Arc<TurnEngine>,
    stack: Option<Stack<TurnCall, TurnOutcome>>,
}

impl TurnService {
    pub(crate) fn new(engine: Arc<TurnEngine>, layers: Layers<TurnCall, TurnOutcome>) -> Self {
        let stack = layers.around(&engine, |engine, turn: TurnCall| async move {
            run(&engine, turn).await.map_err(BoxError::from)
        });
        Self { engine, stack }
    }

    /// Runs one turn.
    ///
    /// # Errors
    ///
    /// Fails when the message cannot be accepted, the host stops, or a layer fails. A turn that ends without an
    /// answer is an outcome, not an error.
    pub async fn call(&self, turn: TurnCall) -> Result<TurnOutcome, TurnError> {
        match &self.stack {
            None => run(&self.engine, turn).await,
            Some(stack) => match AssertUnwindSafe(call(stack, turn)).catch_unwind().await {
                Ok(ended) => ended.map_err(TurnError::from),
                Err(_) => Err(TurnError::Layer("it broke down; its log says why".into())),
            },
        }
    }

    pub(crate) fn engine(&self) -> &Arc<TurnEngine> {
        &self.engine
    }
}

async fn run(engine: &Arc<TurnEngine>, turn: TurnCall) -> Result<TurnOutcome, TurnError> {
    let mut caller = Caller::of(engine.submit(turn.request, turn.progress).await?);
    let news = caller.live.settled().await;
    caller.served = true;
    match news {
        News::Ended(outcome) | News::Parked(outcome) => Ok((*outcome).clone()),
        News::Working | News::Halted => Err(TurnError::Halted),
    }
}

/// Somebody who waits for a turn: when the last one is gone before it rests, the turn is cancelled.
struct Caller {
    live: Arc<LiveTurn>,
    served: bool,
}

impl Caller {
    fn of(live: Arc<LiveTurn>) -> Self {
        live.callers().fetch_add(1, Ordering::Relaxed);
        Self { live, served: false }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let last = self.live.callers().fetch_sub(1, Ordering::Relaxed) == 1;
        if last && !self.served {
            self.live.caller_left();
        }
    }
}
