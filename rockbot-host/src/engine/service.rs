//! Turns as a tower service.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use rockbot_core::BoxError;
use rockbot_core::turn::{OutputValidator, ProgressSink, TurnOutcome, TurnRequest};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::reply::ReplyGuard;
use super::{TurnEngine, TurnError};
use crate::layer::{Layers, Stack, call};
use crate::live::{LiveTurn, ReplySlot, TurnState};

/// A message and the listener to its turn: the request type of tower layers on turns.
///
/// # Examples
///
/// ```
/// use rockbot_core::turn::{ProgressSink, TurnRequest};
/// use rockbot_host::TurnCall;
///
/// let request = TurnRequest::new("kitchen", "message-1", "What can I cook today?");
/// let call = TurnCall::new(request, ProgressSink::none());
/// assert_eq!(call.request.content, "What can I cook today?");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnCall {
    /// The message.
    pub request: TurnRequest,
    /// The sink that receives progress reports while the turn runs.
    pub progress: ProgressSink,
    /// The output validators of this message alone, asked after the host's. They are not in the journal: a turn that
    /// continues after a crash asks the host's alone.
    pub validators: Vec<Arc<dyn OutputValidator>>,
    reply_slot: Option<Arc<ReplySlot>>,
}

impl TurnCall {
    /// Creates a call from a message and the sink for the progress reports of its turn.
    pub fn new(request: TurnRequest, progress: ProgressSink) -> Self {
        Self {
            request,
            progress,
            validators: Vec::new(),
            reply_slot: None,
        }
    }

    /// Adds an output validator for this message alone.
    ///
    /// ```
    /// use rockbot_core::turn::{OutputVerdict, ProgressSink, TurnRequest, validator_fn};
    /// use rockbot_host::TurnCall;
    ///
    /// let no_fish = validator_fn(|answer, _turn| async move {
    ///     Ok(match answer.text.contains("fish") {
    ///         true => OutputVerdict::complain("The user does not eat fish."),
    ///         false => OutputVerdict::Accept,
    ///     })
    /// });
    /// let request = TurnRequest::new("kitchen", "message-1", "What can I cook today?");
    /// let call = TurnCall::new(request, ProgressSink::none()).with_output_validator(no_fish);
    /// assert_eq!(call.validators.len(), 1);
    /// ```
    #[must_use]
    pub fn with_output_validator(mut self, validator: impl OutputValidator) -> Self {
        self.validators.push(Arc::new(validator));
        self
    }
}

tokio::task_local! {
    /// The slot of the message that this task serves, for layers that pass on a call of their own making.
    static SLOT: Arc<ReplySlot>;
}

/// A tower service that runs turns: the user's layers first, then the engine.
///
/// A call resolves when the turn has ended or waits for a person. Dropping the last call that waits for a turn cancels
/// the turn. A mutating tool call that is running by then is still awaited and recorded.
///
/// On a host with a bus, the final reply to a message with a reply topic is published to that topic. Turns that
/// continue after a restart, or after a person's decision, bypass the layers.
#[derive(Debug, Clone)]
pub struct TurnService {
    engine: Arc<TurnEngine>,
    stack: Option<Stack<TurnCall, TurnOutcome>>,
}

impl TurnService {
    /// Creates a service around `engine`.
    pub(crate) fn new(engine: Arc<TurnEngine>, layers: Layers<TurnCall, TurnOutcome>) -> Self {
        let stack = layers.around(&engine, |engine, turn: TurnCall| async move {
            run(&engine, turn).await.map_err(BoxError::from)
        });
        Self { engine, stack }
    }

    /// Runs one turn and returns its outcome.
    ///
    /// # Errors
    ///
    /// Returns an error if the message cannot be accepted, the host stops, or a layer fails. A turn that ends without
    /// an answer is an outcome, not an error.
    pub async fn call(&self, mut turn: TurnCall) -> Result<TurnOutcome, TurnError> {
        let Some(reply) = self.reply_guard(&mut turn) else {
            return self.through_layers(turn).await;
        };
        let slot = Arc::clone(&reply.slot);
        // Boxed: only messages over a bus come here, and the future of every call would have room for it otherwise.
        let ended = SLOT.scope(slot, Box::pin(self.through_layers(turn))).await;
        match &ended {
            Ok(outcome) if outcome.is_final() => reply.reply(outcome).await,
            Err(error @ TurnError::Layer(_)) if !self.is_parked(&reply.request) => reply.fail(error).await,
            // The turn is parked, interrupted or was refused. The engine sends the reply, if there will be one.
            _ => {}
        }
        ended
    }

    /// Accepts a message whose reply goes over the bus. Once this returns, the message has a turn that a crash cannot
    /// lose, or its reply is out, because a layer may answer without the engine. The reply is held back until `reports`
    /// fires.
    pub(crate) async fn accept(&self, mut turn: TurnCall, reports: CancellationToken) -> Result<(), TurnError> {
        let slot = Arc::new(ReplySlot::after(reports));
        turn.reply_slot = Some(Arc::clone(&slot));
        let (sender, ended) = oneshot::channel();
        let service = self.clone();
        let serving = async move {
            // The receiver is gone once the message was accepted, which is the usual case.
            let _ = sender.send(service.call(turn).await);
        };
        // A task of its own: the caller acknowledges the delivery and goes on to the next one.
        self.engine.spawn(serving.in_current_span());
        tokio::select! {
            // In order: a message that was accepted is a success, even when its turn has failed by now.
            biased;
            () = slot.accepted() => Ok(()),
            ended = ended => ended.unwrap_or(Err(TurnError::Halted)).map(drop),
        }
    }

    /// Returns the guard that sends the reply, if the message asks for one and the host has a bus.
    fn reply_guard(&self, turn: &mut TurnCall) -> Option<ReplyGuard> {
        let sender = self.engine.replies.clone()?;
        turn.request.reply_to.as_ref()?;
        let slot = turn.reply_slot.get_or_insert_default();
        Some(ReplyGuard {
            slot: Arc::clone(slot),
            sender,
            request: turn.request.clone(),
        })
    }

    fn is_parked(&self, request: &TurnRequest) -> bool {
        let live = self.engine.find(&request.turn_id());
        live.is_some_and(|live| matches!(live.state(), TurnState::Parked(_)))
    }

    async fn through_layers(&self, turn: TurnCall) -> Result<TurnOutcome, TurnError> {
        match &self.stack {
            None => run(&self.engine, turn).await,
            // A layer is the user's code: its panic fails this call, not the host.
            Some(stack) => match AssertUnwindSafe(call(stack, turn)).catch_unwind().await {
                Ok(ended) => ended.map_err(TurnError::from),
                Err(_) => Err(TurnError::Layer("it panicked; see the log for the cause".into())),
            },
        }
    }

    /// Returns the engine behind the layers.
    pub(crate) fn engine(&self) -> &Arc<TurnEngine> {
        &self.engine
    }
}

async fn run(engine: &Arc<TurnEngine>, turn: TurnCall) -> Result<TurnOutcome, TurnError> {
    let of_task = || {
        SLOT.try_with(Arc::clone)
            .ok()
            .filter(|_| turn.request.reply_to.is_some())
    };
    let slot = turn.reply_slot.or_else(of_task);
    let mut caller = CallerGuard::new(
        engine
            .submit(turn.request, turn.progress, turn.validators, slot)
            .await?,
    );
    // Cancel point: dropped here, the guard cancels the turn if no other caller waits for it.
    let state = caller.live.settled().await;
    caller.is_served = true;
    match state {
        TurnState::Ended(outcome) | TurnState::Parked(outcome) => Ok((*outcome).clone()),
        TurnState::Working | TurnState::Halted => Err(TurnError::Halted),
    }
}

/// A caller that waits for a turn. When the last one is dropped before the turn has settled, the turn is cancelled.
struct CallerGuard {
    live: Arc<LiveTurn>,
    is_served: bool,
}

impl CallerGuard {
    fn new(live: Arc<LiveTurn>) -> Self {
        // `Relaxed`: only the count matters, no other data is ordered by it.
        live.callers().fetch_add(1, Ordering::Relaxed);
        Self { live, is_served: false }
    }
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        let is_last = self.live.callers().fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && !self.is_served {
            self.live.caller_left();
        }
    }
}
