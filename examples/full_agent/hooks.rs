//! Hooks: async functions that turns ask, and whose decisions are in the journal.

use rockbot::turn::{LoopDecision, LoopPoint, LoopPolicy, policy_fn};

/// Number of questions to the model before the last one at which it is told to come to an end.
const RESERVE: u32 = 5;

/// Tells the model to come to an end before its budget is used up.
pub(crate) fn come_to_an_end() -> impl LoopPolicy {
    policy_fn(|point, turn| async move {
        Ok(match point {
            LoopPoint::BeforeRequest if turn.model_calls_left() == RESERVE => {
                LoopDecision::add_message("Only a few steps are left. Finish what you have begun, then answer.")
            }
            _ => LoopDecision::Continue,
        })
    })
}
