//! Which calls of a model's answer run together.
//!
//! Neighbouring pure and idempotent calls run at once; a mutating call runs alone, in its place in the order.

use rockbot_core::CallId;
use rockbot_core::tool::Effect;

use crate::turn::CallState;

/// The calls to run next: none when all have ended.
pub(in crate::turn) fn next_group(calls: &[CallState]) -> Vec<CallId> {
    let mut waiting = calls.iter().skip_while(|call| call.is_finished());
    let Some(first) = waiting.next() else {
        return Vec::new();
    };
    let mut group = vec![first.call.id.clone()];
    if first.facts.effect != Effect::Mutating {
        let together = waiting.take_while(|call| call.facts.effect != Effect::Mutating || call.is_finished());
        group.extend(
            together
                .filter(|call| !call.is_finished())
                .map(|call| call.call.id.clone()),
        );
    }
    group
}
