//! Which tier a text deserves, and when a turn deserves a higher one.

use std::sync::Arc;

use super::ModelTier;

/// Chooses the tier of a turn by what is asked.
///
/// ```
/// use rockbot_core::chat::{ModelTier, TierDecision, TierSelector};
///
/// /// Everything about money is hard.
/// struct Accountant;
///
/// impl TierSelector for Accountant {
///     fn select(&self, text: &str) -> TierDecision {
///         match text.contains('$') {
///             true => TierDecision::new(ModelTier::High, 1.0).because("it is about money"),
///             false => TierDecision::new(ModelTier::Balanced, 0.0),
///         }
///     }
/// }
///
/// assert_eq!(Accountant.select("Where did the $100 go?").tier, ModelTier::High);
/// ```
pub trait TierSelector: Send + Sync + 'static {
    /// The tier that `text` deserves, and why. Called before each turn: it must not block.
    fn select(&self, text: &str) -> TierDecision;

    /// The tier that a turn goes on with, unless it is `tier` as before. Asked before each further model call of a
    /// turn whose tier was selected; a turn that was asked for a tier keeps it.
    ///
    /// Unless implemented: from Low to Balanced once a tool with side effects was called, or two tool calls failed.
    fn escalate(&self, tier: ModelTier, so_far: TurnSoFar) -> Option<ModelTier> {
        let is_hard = so_far.mutating_calls > 0 || so_far.failed_calls >= 2;
        (tier == ModelTier::Low && is_hard).then_some(ModelTier::Balanced)
    }
}

impl<S: TierSelector + ?Sized> TierSelector for Arc<S> {
    fn select(&self, text: &str) -> TierDecision {
        (**self).select(text)
    }

    fn escalate(&self, tier: ModelTier, so_far: TurnSoFar) -> Option<ModelTier> {
        (**self).escalate(tier, so_far)
    }
}

/// A tier, and how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct TierDecision {
    /// The tier.
    pub tier: ModelTier,
    /// How complex the text is: from 0 to 1.
    pub score: f64,
    /// What spoke for it, for people.
    pub reasons: Vec<String>,
}

impl TierDecision {
    /// A decision without reasons.
    pub fn new(tier: ModelTier, score: f64) -> Self {
        Self {
            tier,
            score,
            reasons: Vec::new(),
        }
    }

    /// One more reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reasons.push(reason.into());
        self
    }
}

/// What a turn did so far, as far as it tells how hard it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TurnSoFar {
    /// Calls of tools with side effects.
    pub mutating_calls: u32,
    /// Tool calls that failed.
    pub failed_calls: u32,
}

impl TurnSoFar {
    /// A turn that did nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more call of a tool.
    #[must_use]
    pub fn with_call(mut self, is_mutating: bool, has_failed: bool) -> Self {
        self.mutating_calls = self.mutating_calls.saturating_add(is_mutating.into());
        self.failed_calls = self.failed_calls.saturating_add(has_failed.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl TierSelector for Fixed {
        fn select(&self, _: &str) -> TierDecision {
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
        let (reads, fails, writes) = ((false, false), (false, true), (true, false));
        check(ModelTier::Low, &[], None);
        check(ModelTier::Low, &[reads, fails, reads], None);
        check(ModelTier::Low, &[fails, fails], Some(ModelTier::Balanced));
        check(ModelTier::Low, &[writes], Some(ModelTier::Balanced));
        check(ModelTier::Balanced, &[writes, fails, fails], None);
        check(ModelTier::High, &[writes], None);
    }
}
