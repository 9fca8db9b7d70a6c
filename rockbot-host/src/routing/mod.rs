//! Which tier a turn goes to, where nobody says: asking the selector, and the log of what came of its decisions.

mod log;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rockbot_core::chat::{ModelTier, TierDecision, TierSelector, TurnSoFar};
use rockbot_core::context::Origin;
use rockbot_core::support::loggable;
use rockbot_core::turn::{TurnOutcome, TurnRequest, TurnStatus};
use rockbot_core::{Timestamp, TurnId};

pub use log::{RoutingEntry, RoutingLog, RoutingResult};

use crate::turn::Turn;

/// A selector, and the log of its decisions.
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
    pub(crate) fn new(selector: Arc<dyn TierSelector>, log: RoutingLog) -> Self {
        let log = Arc::new(log);
        Self { selector, log }
    }

    pub(crate) fn log(&self) -> &RoutingLog {
        &self.log
    }

    /// The tier of a message that names none.
    pub(crate) fn select(&self, request: &TurnRequest) -> Option<TierDecision> {
        if request.tier.is_some() {
            return None;
        }
        let decision = guarded(|| request.turn_id(), || self.selector.select(&request.text))?;
        let (tier, score) = (decision.tier.name(), decision.score);
        // Its id is only made when somebody reads this.
        tracing::info!(turn = %request.turn_id(), tier, score, reasons = %loggable(&decision.reasons.join("; ")), "tier selected");
        Some(decision)
    }

    /// The tier that a turn goes on with instead of `tier`, after what it did so far.
    pub(crate) fn escalate(&self, turn: &TurnId, tier: ModelTier, so_far: TurnSoFar) -> Option<ModelTier> {
        guarded(|| turn.clone(), || self.selector.escalate(tier, so_far)).flatten()
    }

    /// Notes what came of the decision about a turn, which nobody remembers when it was made before a restart. Returns
    /// whether there is something to [write](TierRouter::write) now.
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
        let forgotten = TierDecision::new(selected, 0.0).because("selected before a restart");
        let request = turn.request();
        let entry = RoutingEntry {
            result: Some(result(turn, outcome)),
            ..RoutingEntry::new(
                at,
                context(request.origin),
                &request.text,
                decision.unwrap_or(&forgotten),
            )
        };
        self.log.buffer(entry).unwrap_or_else(|error| warn_unwritten(&error))
    }

    /// Writes what was noted. A few short lines, as the journal writes its own: another thread would cost more.
    pub(crate) fn write(&self) {
        self.log.write().unwrap_or_else(|error| warn_unwritten(&error));
    }
}

fn warn_unwritten<T: Default>(error: &io::Error) -> T {
    tracing::warn!(%error, "the log of tiers cannot be written");
    T::default()
}

/// A selector is a user's code: one that breaks down selects nothing.
fn guarded<T>(turn: impl FnOnce() -> TurnId, ask: impl FnOnce() -> T) -> Option<T> {
    let answer = catch_unwind(AssertUnwindSafe(ask)).ok();
    if answer.is_none() {
        tracing::error!(turn = %turn(), "the tier selector panicked");
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
    let (spent, latency) = (outcome.spent(), turn.worked().as_millis());
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
        _ => "failed",
    }
}
