//! The user's layers around the work of a turn, within the turn's own task.
//!
//! ```text
//!  the turn's task                       the user's layers
//!  ───────────────                       ─────────────────
//!  through_layers ──── TurnCall ───────► … what a layer does before
//!  drive the turn ◄─── WorkRequest ───── next.call(…)
//!       └───────────── outcome ────────► … what it does after
//!  conversation, reply, journal ◄─────── outcome, or an error
//! ```
//!
//! A layer does not drive the turn: its `next` asks the turn's task to, and waits. So a layer may
//! be dropped at any await, as tower's time-out does it, while a drive may not. No call that runs
//! and no record is lost: the task notices, cancels the turn, and drives it to its end.
//!
//! The layers get the request and return the outcome, and the task drives the turn when they call
//! their inner service. Their outcome goes through the end above: conversation, reply, journal.
//! After the turn's end the layers have two minutes. Then, or when they fail or panic, the turn
//! ends with a failure that says so, and its answer is withheld. If the turn is cancelled, or its
//! host stops, before the layers call their inner service, it does not wait for them.
//!
//! The innermost service finds the task by the id of the turn, because a layer may pass on a call
//! of its own making.
//!
//! The request as layers left it is recorded in `Started`, in one record with the context that
//! follows from it: a resumed turn goes on with it, and its layers cannot apply the same change
//! twice.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use rockbot_core::chat::ChatError;
use rockbot_core::store::StoreError;
use rockbot_core::support::{caught, loggable, reference};
use rockbot_core::turn::{Claim, JournalError, TurnFailure, TurnOutcome, TurnStatus};
use rockbot_core::{BoxError, TurnId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::accept::check;
use super::run::cancelled;
use super::{TurnCall, TurnEngine, TurnError};
use crate::driver::DriveStart;
use crate::layer::{Layers, Stack, call};
use crate::live::LiveTurn;
use crate::turn::{CancelReason, Revision, Turn};

/// Maximum time that the layers may take after the turn has ended. Before it they are not
/// limited: a limit of rate or concurrency may make a turn wait long, and a cancellation or the
/// end of the host ends that wait.
const TIME_LIMIT: Duration = Duration::from_secs(2 * 60);

/// The turn layers of a host.
pub(crate) struct TurnLayers {
    stack: Stack<TurnCall, TurnOutcome>,
    working: Arc<LayeredTurns>,
}

/// The turns within their layers, by id: where the innermost service finds the task of a call's
/// turn. A layer may pass on a call of its own making, so the call itself cannot carry it.
#[derive(Debug, Default)]
struct LayeredTurns(Mutex<HashMap<TurnId, mpsc::Sender<WorkRequest>>>);

/// The request of the innermost layer that the turn's task does the work.
#[derive(Debug)]
struct WorkRequest {
    call: TurnCall,
    /// Closed when the layer no longer waits.
    done: oneshot::Sender<Result<TurnOutcome, TurnError>>,
}

/// The end of the layers: the outcome that they returned, or their error.
type Returned = Result<TurnOutcome, TurnError>;

impl TurnLayers {
    /// Creates the layers of a host; `None` without any.
    pub(crate) fn new(layers: Layers<TurnCall, TurnOutcome>) -> Option<Self> {
        let working = Arc::new(LayeredTurns::default());
        let stack = layers.around(&working, |working, call: TurnCall| async move {
            working.request(call).await.map_err(BoxError::from)
        })?;
        Some(Self { stack, working })
    }

    /// Passes a call through the layers. They are the user's code: their panic fails this turn, not
    /// the host.
    async fn call(&self, turn: TurnCall) -> Returned {
        match caught(AssertUnwindSafe(call(&self.stack, turn)).catch_unwind().await) {
            Ok(returned) => returned.map_err(TurnError::from),
            Err(_) => Err(TurnError::Layer("it panicked; see the log for the cause".into())),
        }
    }
}

impl fmt::Debug for TurnLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnLayers").finish_non_exhaustive()
    }
}

impl LayeredTurns {
    /// Asks the task of the call's turn to do the work, and waits for its outcome.
    async fn request(&self, call: TurnCall) -> Returned {
        let id = call.request.turn_id();
        let Some(task) = self.lock().get(&id).cloned() else {
            return Err(TurnError::OtherTurn(id));
        };
        let (done, outcome) = oneshot::channel();
        // Either fails when the task drops the layers: the host stops, and nothing follows from this
        // value.
        task.send(WorkRequest { call, done })
            .await
            .map_err(|_| TurnError::Halted)?;
        outcome.await.unwrap_or(Err(TurnError::Halted))
    }

    /// Registers a turn until the entry is dropped.
    fn enter<'a>(&'a self, turn: &'a TurnId) -> LayeredTurn<'a> {
        let (sender, requests) = mpsc::channel(1);
        self.lock().insert(turn.clone(), sender);
        LayeredTurn {
            turns: self,
            turn,
            requests,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, mpsc::Sender<WorkRequest>>> {
        // No code that can panic runs under the lock, so a poisoned one still guards a consistent map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn within its layers. Dropping it removes the turn from the registry.
struct LayeredTurn<'a> {
    turns: &'a LayeredTurns,
    turn: &'a TurnId,
    requests: mpsc::Receiver<WorkRequest>,
}

impl LayeredTurn<'_> {
    /// Waits for the next request. Never ends while the turn is registered, which holds a sender.
    async fn request(&mut self) -> WorkRequest {
        match self.requests.recv().await {
            Some(request) => request,
            None => std::future::pending().await,
        }
    }

    /// Waits for the layers to return, and gives the outcome to each further call of `next`: a turn
    /// works once.
    async fn returned(
        &mut self,
        mut layered: Pin<&mut impl Future<Output = Returned>>,
        outcome: TurnOutcome,
    ) -> Returned {
        let returned = async {
            loop {
                tokio::select! {
                    returned = &mut layered => return returned,
                    again = self.request() => drop(again.done.send(Ok(outcome.clone()))),
                }
            }
        };
        timeout(TIME_LIMIT, returned)
            .await
            .unwrap_or(Err(TurnError::LayerTimedOut))
    }
}

impl Drop for LayeredTurn<'_> {
    fn drop(&mut self) {
        self.turns.lock().remove(self.turn);
    }
}

impl TurnEngine {
    /// Works on a turn within its layers. Returns the outcome that they return, or `None` when the
    /// host stops first.
    pub(super) async fn through_layers(
        &self,
        layers: &TurnLayers,
        live: &LiveTurn,
        claim: &Claim,
        turn: &mut Turn,
        start: Option<DriveStart>,
    ) -> Option<TurnOutcome> {
        let mut within = layers.working.enter(live.id());
        let mut call = TurnCall::new(turn.request().as_ref().clone(), live.progress().clone());
        call.validators = live.validators().to_vec();
        call.is_continued = !turn.is_new();
        let mut layered = pin!(layers.call(call));
        let (call, done, revision) = loop {
            let request = tokio::select! {
                // In order: a cancelled turn ends for good, and a turn of a host that stops must
                // not begin. Neither enters a layer.
                biased;
                () = live.cancellation().cancelled() => {
                    let start = start.unwrap_or_else(|| cancelled(live));
                    return self.work(live, claim, turn, Some(start), None).await;
                }
                () = self.closing.cancelled() => return None,
                returned = &mut layered => return Some(self.outcome_of(live, turn, returned).await),
                request = within.request() => request,
            };
            match self.revise(live, turn, &request.call).await {
                Ok(revision) => break (request.call, request.done, revision),
                Err(error) => drop(request.done.send(Err(error))),
            }
        };
        live.set_layered(call.progress, call.validators);
        let work = self.work(live, claim, turn, start, revision);
        let (outcome, mut returned) = work_within(live, layered.as_mut(), pin!(work), done).await;
        if returned.is_none() {
            returned = Some(within.returned(layered, outcome?).await);
        }
        Some(self.outcome_of(live, turn, returned?).await)
    }

    /// Changes the request of a turn that has not begun to the request that the layers passed on.
    /// The identity of the message stays, and so does the topic of its reply.
    async fn revise(
        &self,
        live: &LiveTurn,
        turn: &mut Turn,
        call: &TurnCall,
    ) -> Result<Option<Box<Revision>>, TurnError> {
        let accepted = turn.request();
        let own = turn.policy().hooks.request_validators;
        // Validators that a restart lost were not the layers' to drop: they are still missed.
        let lost = own.saturating_sub(live.validators().len());
        let validators = call.validators.len() + lost;
        let is_same = call.request == **accepted && own == validators;
        if !turn.is_new() || is_same {
            return Ok(None);
        }
        check(&call.request)?;
        let mut request = call.request.clone();
        request.reply_to.clone_from(&accepted.reply_to);
        request.correlation_id.clone_from(&accepted.correlation_id);
        self.keep_media(&mut request).await?;
        let mut policy = self.policy_of(&request, turn.policy().tier);
        policy.hooks.add_validators(validators);
        let revision = Box::new(Revision {
            request: Arc::new(request),
            policy,
        });
        turn.revise(&revision);
        Ok(Some(revision))
    }

    /// Returns the outcome of a turn that ends, or parks, once its layers have returned.
    async fn outcome_of(&self, live: &LiveTurn, turn: &Turn, returned: Returned) -> TurnOutcome {
        let error = match returned {
            Ok(mut outcome) if outcome.is_final() || turn.parked_until().is_some() => {
                outcome.turn.clone_from(live.id());
                if !outcome.media.is_empty() {
                    let keeping = self.media.keep_parts(&turn.request().principal, &mut outcome.media);
                    Box::pin(keeping).await;
                }
                return outcome;
            }
            Ok(_) => TurnError::Layer("it parked a turn that waits for no decision".into()),
            Err(error) => error,
        };
        let reference = reference(&error);
        tracing::warn!(turn = %live.id(), reference, error = %loggable(&error.to_string()), "turn layer failed; the turn ends without its answer");
        let outcome = withheld(turn, &error);
        live.set_error(error.into());
        outcome
    }
}

/// Polls the work of a turn and its layers until the work is done. When the layers return before
/// that, or drop the call, the turn is cancelled: its work then ends soon, and the work that it
/// did is recorded.
async fn work_within(
    live: &LiveTurn,
    mut layered: Pin<&mut impl Future<Output = Returned>>,
    mut work: Pin<&mut impl Future<Output = Option<TurnOutcome>>>,
    mut done: oneshot::Sender<Returned>,
) -> (Option<TurnOutcome>, Option<Returned>) {
    let mut returned = None;
    let mut is_awaited = true;
    loop {
        tokio::select! {
            biased;
            outcome = &mut work => {
                if let Some(outcome) = &outcome {
                    // Fails when the layer no longer waits.
                    let _ = done.send(Ok(outcome.clone()));
                }
                return (outcome, returned);
            }
            early = &mut layered, if returned.is_none() => returned = Some(early),
            () = done.closed(), if is_awaited => is_awaited = false,
        }
        live.cancel(CancelReason::Caller);
    }
}

/// Reports whether the error of a layer is a text for the sender of the message, such as the
/// reason of a layer that refuses it: one line without a path, and of no store, file or server.
fn is_for_user(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_own =
        error.is::<StoreError>() || error.is::<JournalError>() || error.is::<ChatError>() || error.is::<io::Error>();
    let text = error.to_string();
    let is_path = |word: &str| word.contains('\\') || word.matches('/').count() > 1;
    !is_own && error.source().is_none() && !text.contains('\n') && !text.split_whitespace().any(is_path)
}

/// Returns the outcome of a turn whose layers failed. The turn's own text is withheld: the layers
/// were to change it, for example to remove text that must not be shown.
fn withheld(turn: &Turn, error: &TurnError) -> TurnOutcome {
    let text = match error {
        TurnError::Layer(cause) if !is_for_user(&**cause) => format!(
            "This message could not be answered: the agent has a failure of its own, which its operator finds under the \
             reference {}.",
            reference(error)
        ),
        TurnError::Layer(cause) if turn.is_new() => format!("This message was not accepted: {cause}"),
        error => format!("This message could not be answered: {error}."),
    };
    let own = turn.outcome().filter(|own| own.is_final() && !own.is_answer());
    match own.map(|own| own.status) {
        None => turn.failed_with(TurnFailure::Internal, &text),
        Some(TurnStatus::Failed(failure)) => turn.failed_with(failure, &text),
        Some(status) => turn.ended_with(status, text),
    }
}
