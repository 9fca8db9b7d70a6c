//! Routing of turns to model tiers: the selector is asked if a message names no tier, and its
//! decisions are logged with their results.

mod log;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use rockbot_core::chat::ModelTier;
use rockbot_core::context::Origin;
use rockbot_core::support::{caught, loggable};
use rockbot_core::turn::{TierDecision, TierSelector, TurnOutcome, TurnRequest, TurnSoFar, TurnStatus};
use rockbot_core::{Timestamp, TurnId};
use tokio::time::timeout;

pub use log::{RoutingEntry, RoutingLog, RoutingResult};

use crate::turn::Turn;

/// Maximum time of a selection. A message waits for it.
const MAX_SELECTION: Duration = Duration::from_secs(10);

/// A tier selector with the log of its decisions.
pub(crate) struct TierRouter {
    selector: Arc<dyn TierSelector>,
    log: Arc<RoutingLog>,
}

impl fmt::Debug for TierRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TierRouter")
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

impl TierRouter {
    /// Creates a router that records decisions of `selector` in `log`.
    pub(crate) fn new(selector: Arc<dyn TierSelector>, log: RoutingLog) -> Self {
        let log = Arc::new(log);
        Self { selector, log }
    }

    pub(crate) fn log(&self) -> &RoutingLog {
        &self.log
    }

    /// Selects the tier of a message. Returns `None` if the message names one, or if the selector
    /// panicked or took too long.
    pub(crate) async fn select(&self, request: &TurnRequest) -> Option<TierDecision> {
        if request.tier.is_some() {
            return None;
        }
        let selecting = AssertUnwindSafe(async { self.selector.select(request).await }).catch_unwind();
        let decision = match timeout(MAX_SELECTION, selecting).await {
            Ok(selected) => caught(selected).map_err(|_| "panicked"),
            Err(_) => Err("took too long"),
        };
        let decision = decision
            .inspect_err(|why| tracing::error!(turn = %request.turn_id(), "tier selector {why}; no tier is selected"))
            .ok()?;
        let tier = decision.tier.name();
        let score = decision.score;
        // The id is a hash, which is only computed if a subscriber records this event.
        tracing::info!(turn = %request.turn_id(), tier, score, reasons = %loggable(&decision.reasons.join("; ")), "tier selected");
        Some(decision)
    }

    /// Returns the tier that a turn escalates to from `tier` after its work so far; `None` to stay.
    pub(crate) fn escalate(&self, turn: &TurnId, tier: ModelTier, so_far: TurnSoFar) -> Option<ModelTier> {
        guarded(|| turn.clone(), || self.selector.escalate(tier, so_far)).flatten()
    }

    /// Records the result of the decision about a turn. `decision` is `None` if it was made before a
    /// restart, since scores are not in the journal. Returns `true` if the caller has to
    /// [write](TierRouter::write) the log soon.
    pub(crate) fn ended(
        &self,
        turn: &Turn,
        decision: Option<&TierDecision>,
        outcome: &TurnOutcome,
        at: Timestamp,
    ) -> bool {
        let Some(selected) = turn.selected_tier() else {
            return false;
        };
        let unknown = TierDecision::new(selected, 0.0).because("selected before a restart");
        let request = turn.request();
        let entry = RoutingEntry {
            result: Some(result(turn, outcome)),
            ..RoutingEntry::new(
                at,
                context(request.origin),
                &request.content.text(),
                decision.unwrap_or(&unknown),
            )
        };
        self.log.buffer(entry).unwrap_or_else(|error| warn_unwritten(&error))
    }

    /// Writes the buffered decisions. A few short lines; handing them to another thread would cost
    /// more.
    pub(crate) fn write(&self) {
        self.log.write().unwrap_or_else(|error| warn_unwritten(&error));
    }
}

fn warn_unwritten<T: Default>(error: &io::Error) -> T {
    tracing::warn!(%error, "routing log cannot be written; buffered decisions are lost");
    T::default()
}

/// Asks the selector, which is user code: a panic is logged and selects nothing.
fn guarded<T>(turn: impl FnOnce() -> TurnId, ask: impl FnOnce() -> T) -> Option<T> {
    let answer = caught(catch_unwind(AssertUnwindSafe(ask))).ok();
    if answer.is_none() {
        tracing::error!(turn = %turn(), "tier selector panicked; its decision is ignored");
    }
    answer
}

fn context(origin: Origin) -> &'static str {
    match origin {
        Origin::Scheduled => "scheduled",
        Origin::Subagent => "subagent",
        _ => "user-message",
    }
}

fn result(turn: &Turn, outcome: &TurnOutcome) -> RoutingResult {
    let spent = outcome.spent();
    let latency = turn.worked().as_millis();
    RoutingResult {
        status: status(&outcome.status).to_owned(),
        escalated_to: turn.escalated_tier(),
        model_calls: outcome.model_calls,
        input_tokens: spent.usage.input,
        output_tokens: spent.usage.output,
        cost_micro_usd: spent.price(),
        latency_ms: u64::try_from(latency).unwrap_or(u64::MAX),
    }
}

fn status(status: &TurnStatus) -> &'static str {
    match status {
        TurnStatus::Answered => "answered",
        TurnStatus::Partial(_) => "partial",
        TurnStatus::Cancelled => "cancelled",
        TurnStatus::Superseded => "superseded",
        TurnStatus::Refused => "refused",
        _ => "failed",
    }
}
