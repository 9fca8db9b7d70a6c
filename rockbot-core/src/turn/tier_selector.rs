//! Selection of the model tier of a turn, and its escalation.

use async_trait::async_trait;

use super::TurnRequest;
use crate::chat::ModelTier;
use crate::shared::share;

/// A policy that selects the model tier of a turn by its request.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::chat::ModelTier;
/// use rockbot_core::turn::{TierDecision, TierSelector, TurnRequest};
///
/// /// Everything about money is hard.
/// struct Accountant;
///
/// #[async_trait]
/// impl TierSelector for Accountant {
///     async fn select(&self, request: &TurnRequest) -> TierDecision {
///         if request.content.text().contains('$') {
///             TierDecision::new(ModelTier::High, 1.0).because("it is about money")
///         } else {
///             TierDecision::new(ModelTier::Balanced, 0.0)
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let request = TurnRequest::new("s", "m", "Where did the $100 go?");
/// assert_eq!(Accountant.select(&request).await.tier, ModelTier::High);
/// # }
/// ```
#[async_trait]
pub trait TierSelector: Send + Sync + 'static {
    /// Returns the tier for the turn of `request`, with reasons. Called before each turn. A host
    /// waits for 10 seconds, and then begins the turn without a tier.
    async fn select(&self, request: &TurnRequest) -> TierDecision;

    /// Returns the tier that a turn continues with, or `None` to keep `tier`. Called before each
    /// further model call of a turn whose tier was selected; a turn that was requested with a tier
    /// keeps it.
    ///
    /// The default escalates from Low to Balanced after a call of a tool with side effects, or after
    /// two failed calls.
    fn escalate(&self, tier: ModelTier, so_far: TurnSoFar) -> Option<ModelTier> {
        let is_hard = so_far.mutating_calls > 0 || so_far.failed_calls >= 2;
        (tier == ModelTier::Low && is_hard).then_some(ModelTier::Balanced)
    }
}

share! {
    TierSelector {
        async select<'a>(request: &'a TurnRequest) -> TierDecision;
        fn escalate(tier: ModelTier, so_far: TurnSoFar) -> Option<ModelTier>;
    }
}

/// A selected tier, with score and reasons.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TierDecision {
    /// The selected tier.
    pub tier: ModelTier,
    /// Estimated complexity of the text, from 0 to 1.
    pub score: f64,
    /// Reasons for the tier, for people.
    pub reasons: Vec<String>,
}

impl TierDecision {
    /// Creates a decision without reasons.
    pub fn new(tier: ModelTier, score: f64) -> Self {
        Self {
            tier,
            score,
            reasons: Vec::new(),
        }
    }

    /// Adds a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reasons.push(reason.into());
        self
    }
}

/// Counters of a turn in progress that indicate its difficulty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TurnSoFar {
    /// Number of calls of tools with side effects.
    pub mutating_calls: u32,
    /// Number of tool calls that failed.
    pub failed_calls: u32,
}

impl TurnSoFar {
    /// Creates the counters of a turn that did nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a copy with one more tool call counted.
    #[must_use]
    pub fn with_call(mut self, is_mutating: bool, has_failed: bool) -> Self {
        self.mutating_calls = self.mutating_calls.saturating_add(is_mutating.into());
        self.failed_calls = self.failed_calls.saturating_add(has_failed.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Fixed;

    #[async_trait]
    impl TierSelector for Fixed {
        async fn select(&self, _: &TurnRequest) -> TierDecision {
            TierDecision::new(ModelTier::Low, 0.0)
        }
    }

    #[track_caller]
    fn check(tier: ModelTier, calls: &[(bool, bool)], expected: Option<ModelTier>) {
        let add =
            |so_far: TurnSoFar, (is_mutating, has_failed): &(bool, bool)| so_far.with_call(*is_mutating, *has_failed);
        let so_far = calls.iter().fold(TurnSoFar::new(), add);
        assert_eq!(Arc::new(Fixed).escalate(tier, so_far), expected);
    }

    #[test]
    fn a_low_turn_that_turns_out_hard_goes_on_with_balanced() {
        let reads = (false, false);
        let fails = (false, true);
        let writes = (true, false);
        check(ModelTier::Low, &[], None);
        check(ModelTier::Low, &[reads, fails, reads], None);
        check(ModelTier::Low, &[fails, fails], Some(ModelTier::Balanced));
        check(ModelTier::Low, &[writes], Some(ModelTier::Balanced));
        check(ModelTier::Balanced, &[writes, fails, fails], None);
        check(ModelTier::High, &[writes], None);
    }
}
