//! Turns as a tower service.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use rockbot_core::BoxError;
use rockbot_core::turn::{ProgressSink, TurnOutcome, TurnRequest};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::reply::Serving;
use super::{LiveTurn, ReplySlot, TurnEngine, TurnError, TurnState};
use crate::layer::{Layers, Stack, call};

/// A message and whoever listens to its turn: what tower layers on turns see.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnCall {
    /// The message.
    pub request: TurnRequest,
    /// Whoever listens.
    pub progress: ProgressSink,
    slot: Option<Arc<ReplySlot>>,
}

impl TurnCall {
    /// A message, and whoever listens to its turn.
    pub fn new(request: TurnRequest, progress: ProgressSink) -> Self {
        Self {
            request,
            progress,
            slot: None,
        }
    }
}

tokio::task_local! {
    /// Whoever serves the message, for layers that pass on a call of their own making.
    static SLOT: Arc<ReplySlot>;
}

/// Runs turns: the user's layers, then the engine.
///
/// A call resolves when the turn has ended or waits for a person. Dropping the last call that waits for a turn
/// cancels it; what a mutating tool call does by then is still waited for and recorded.
///
/// On a host with a bus, the final reply to a message with a reply topic is sent there. Turns that go on after a
/// restart, or after a person decided, do so without the layers.
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
    pub async fn call(&self, mut turn: TurnCall) -> Result<TurnOutcome, TurnError> {
        let serving = self.serve(&mut turn);
        let Some(serving) = serving else {
            return self.through_layers(turn).await;
        };
        let slot = Arc::clone(&serving.slot);
        let ended = SLOT.scope(slot, Box::pin(self.through_layers(turn))).await;
        match &ended {
            Ok(outcome) if outcome.is_final() => serving.reply(outcome).await,
            Err(error @ TurnError::Layer(_)) if !self.is_parked(&serving.request) => serving.fail(error).await,
            // The engine sends the reply when there is one.
            _ => {}
        }
        ended
    }

    /// Accepts a message whose reply goes over the bus. Once this returns, the message has a turn that a crash
    /// cannot lose, or its reply is out: a layer may answer by itself. The reply waits for the reports before it,
    /// until `reports` fires.
    pub(crate) async fn accept(&self, mut turn: TurnCall, reports: CancellationToken) -> Result<(), TurnError> {
        let slot = Arc::new(ReplySlot::after(reports));
        turn.slot = Some(Arc::clone(&slot));
        let (tell, told) = oneshot::channel();
        let service = self.clone();
        let serving = async move {
            // Nobody listens any more once the message was accepted.
            let _ = tell.send(service.call(turn).await);
        };
        self.engine.spawn(serving.in_current_span());
        tokio::select! {
            biased;
            () = slot.accepted() => Ok(()),
            ended = told => ended.unwrap_or(Err(TurnError::Halted)).map(drop),
        }
    }

    /// Gets ready to send the reply, if the message wants one over the bus.
    fn serve(&self, turn: &mut TurnCall) -> Option<Serving> {
        let sender = self.engine.replies.clone()?;
        turn.request.reply_to.as_ref()?;
        let slot = turn.slot.get_or_insert_default();
        Some(Serving {
            slot: Arc::clone(slot),
            sender,
            request: turn.request.clone(),
        })
    }

    fn is_parked(&self, request: &TurnRequest) -> bool {
        let live = self.engine.find(&request.turn_id());
        live.is_some_and(|live| matches!(live.news(), TurnState::Parked(_)))
    }

    async fn through_layers(&self, turn: TurnCall) -> Result<TurnOutcome, TurnError> {
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
    let served = || {
        SLOT.try_with(Arc::clone)
            .ok()
            .filter(|_| turn.request.reply_to.is_some())
    };
    let slot = turn.slot.or_else(served);
    let mut caller = Caller::of(engine.submit(turn.request, turn.progress, slot).await?);
    let news = caller.live.settled().await;
    caller.served = true;
    match news {
        TurnState::Ended(outcome) | TurnState::Parked(outcome) => Ok((*outcome).clone()),
        TurnState::Working | TurnState::Halted => Err(TurnError::Halted),
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
