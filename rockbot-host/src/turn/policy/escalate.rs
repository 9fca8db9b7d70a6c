//! Escalation: a turn may continue with a more capable model than the model that was selected for
//! it.
//!
//! The selector saw only the message; the turn's activity shows how hard the work is. This policy
//! decides which turns ask the selector again, and the driver asks it. A tier that the message
//! names is kept, and so is the tier of a last answer, which has no tools and needs no more
//! capable model.

use rockbot_core::chat::ModelTier;
use rockbot_core::turn::TurnSoFar;

use crate::turn::Purpose;

/// Reports whether the tier may be raised before a question for `purpose`.
///
/// It may when a selector chose it, the message names none, and the turn has had activity that
/// the selector did not know of.
pub(in crate::turn) fn may(
    named: Option<ModelTier>,
    selected: Option<ModelTier>,
    activity: TurnSoFar,
    purpose: &Purpose,
) -> bool {
    named.is_none() && selected.is_some() && activity != TurnSoFar::new() && purpose.has_tools()
}

/// Returns the wanted tier if it is higher than the present one. A turn is never lowered.
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
        let check = |named, selected, activity, purpose: Purpose, expected| {
            assert_eq!(may(named, selected, activity, &purpose), expected, "{purpose:?}");
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
