//! When a turn may go on with a more capable model than the one that was selected for it.
//!
//! Its message looked simple and the work is not. Whether it is hard enough is the selector's business; this says whom
//! it is asked about. A tier that the message names is kept, and so is the tier of a last answer.

use rockbot_core::chat::{ModelTier, TurnSoFar};

use crate::turn::Purpose;

/// Whether the tier may be raised before the model is asked for `purpose`: it was `selected`, the message does not name
/// it, and the turn did something that the selector did not know of.
pub(in crate::turn) fn may(
    named: Option<ModelTier>,
    selected: Option<ModelTier>,
    so_far: TurnSoFar,
    purpose: &Purpose,
) -> bool {
    named.is_none() && selected.is_some() && so_far != TurnSoFar::new() && purpose.has_tools()
}

/// The tier to go on with: only a higher one.
pub(crate) fn higher(tier: ModelTier, wanted: Option<ModelTier>) -> Option<ModelTier> {
    wanted.filter(|wanted| *wanted > tier)
}

#[cfg(test)]
mod tests {
    use rockbot_core::turn::BudgetLimit;

    use super::*;

    const LOW: Option<ModelTier> = Some(ModelTier::Low);

    #[test]
    fn only_a_selected_tier_may_be_raised() {
        let failed = TurnSoFar::new().with_call(false, true);
        let check = |named, selected, so_far, purpose: Purpose, expected| {
            assert_eq!(may(named, selected, so_far, &purpose), expected, "{purpose:?}");
        };
        check(None, LOW, failed, Purpose::Answer, true);
        check(None, None, failed, Purpose::Answer, false);
        check(LOW, LOW, failed, Purpose::Answer, false);
        check(None, LOW, TurnSoFar::new(), Purpose::Answer, false);
        check(None, LOW, failed, Purpose::AssessFollowUp, false);
        check(None, LOW, failed, Purpose::Conclude(BudgetLimit::Cost), false);
    }

    #[test]
    fn a_turn_never_goes_down() {
        assert_eq!(higher(ModelTier::Low, Some(ModelTier::High)), Some(ModelTier::High));
        for wanted in [None, LOW, Some(ModelTier::Balanced)] {
            assert_eq!(higher(ModelTier::Balanced, wanted), None);
        }
    }
}
