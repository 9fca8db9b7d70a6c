//! A call that runs a turn of another agent: what that turn may spend, and what it spent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::TurnId;
use rockbot_core::chat::{MicroUsd, ModelTier, Spent};
use rockbot_core::turn::{Budget, TurnOutcome};
use serde::{Deserialize, Serialize};

/// The work of another agent's turn, as the calling turn pays for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub(crate) struct DelegatedWork {
    /// The turn; `None` in a record of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turn: Option<TurnId>,
    /// Number of model calls.
    pub(crate) model_calls: u32,
    /// Number of tool calls.
    pub(crate) tool_calls: u32,
    /// Tokens and cost of the answers, by tier.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tiers: BTreeMap<ModelTier, Spent>,
}

/// The account of one call, which the driver shares with the tool: the tool reads its budget and enters its expenses.
#[derive(Debug, Clone)]
pub(crate) struct Delegation {
    budget: Budget,
    state: Arc<Mutex<DelegationState>>,
}

#[derive(Debug, Default)]
struct DelegationState {
    work: Option<DelegatedWork>,
    is_interrupted: bool,
}

impl From<&TurnOutcome> for DelegatedWork {
    fn from(outcome: &TurnOutcome) -> Self {
        Self {
            turn: Some(outcome.turn.clone()),
            model_calls: outcome.model_calls,
            tool_calls: u32::try_from(outcome.calls.len()).unwrap_or(u32::MAX),
            tiers: outcome.tiers.clone(),
        }
    }
}

impl Delegation {
    /// Creates the account of one of `calls` that run concurrently and share the budget `left`.
    pub(crate) fn new(left: Budget, calls: u32) -> Self {
        Self {
            budget: share(left, calls.max(1)),
            state: Arc::default(),
        }
    }

    /// Returns the budget of the call.
    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    /// Enters what the other agent's turn cost.
    pub(crate) fn enter(&self, outcome: &TurnOutcome) {
        self.lock().work = Some(outcome.into());
    }

    /// Notes that the other agent's host stopped before its turn ended. The turn continues when that host starts again.
    pub(crate) fn interrupt(&self) {
        self.lock().is_interrupted = true;
    }

    /// Takes what the other agent's turn cost.
    pub(crate) fn take_work(&self) -> Option<DelegatedWork> {
        self.lock().work.take()
    }

    /// Returns `true` if the other agent's turn did not end, because its host stopped.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.lock().is_interrupted
    }

    fn lock(&self) -> MutexGuard<'_, DelegationState> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the `parts`th part of a budget. Time is not divided: the calls run side by side.
fn share(left: Budget, parts: u32) -> Budget {
    let parts_of = |tokens: u64| tokens / u64::from(parts);
    left.with_max_model_calls(left.max_model_calls / parts)
        .with_max_tool_calls(left.max_tool_calls / parts)
        .with_max_tokens(left.max_tokens.map(parts_of))
        .with_max_cost(left.max_cost.map(|cost| MicroUsd(parts_of(cost.0))))
}
