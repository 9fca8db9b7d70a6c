//! The groups of a model's calls that run together.
//!
//! Neighbouring pure and idempotent calls run concurrently; a mutating call runs alone, at its
//! place in the order. So a read after a write sees the write, as the model expects.

use rockbot_core::CallId;
use rockbot_core::tool::Effect;

use crate::turn::CallState;

/// Returns the calls to run next; none when all have ended.
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

#[cfg(test)]
mod tests {
    use rockbot_core::chat::ToolCall;
    use rockbot_core::tool::ToolErrorCode;

    use super::*;
    use crate::turn::CallFacts;

    fn call(index: usize, effect: Effect) -> CallState {
        let call = ToolCall::new(index.to_string(), "act", "{}");
        let needs_approval = false;
        CallState::new(
            call,
            CallFacts {
                effect,
                needs_approval,
                own_output: false,
                keeps_result_whole: false,
                delegates: false,
                runs_turn: false,
            },
        )
    }

    /// Returns the groups in which the calls run: `p`ure, `i`dempotent, `m`utating, `d`enied before.
    fn groups(effects: &str) -> String {
        let effect = |letter| match letter {
            'p' => Effect::Pure,
            'i' => Effect::Idempotent,
            _ => Effect::Mutating,
        };
        let mut calls: Vec<_> = effects
            .chars()
            .enumerate()
            .map(|(index, letter)| call(index, effect(letter)))
            .collect();
        let end = |call: &mut CallState| call.refuse(ToolErrorCode::Denied, "", &"s".into());
        let denied = effects.chars().zip(&mut calls).filter(|(letter, _)| *letter == 'd');
        denied.for_each(|(_, call)| end(call));
        let mut groups = Vec::new();
        loop {
            let group = next_group(&calls);
            if group.is_empty() {
                return groups.join(" ");
            }
            calls
                .iter_mut()
                .filter(|call| group.contains(&call.call.id))
                .for_each(end);
            groups.push(group.iter().map(CallId::as_str).collect::<Vec<_>>().join("+"));
        }
    }

    #[test]
    fn neighbours_that_change_nothing_new_run_together() {
        for (effects, expected) in [
            ("", ""),
            ("p", "0"),
            ("m", "0"),
            ("pip", "0+1+2"),
            ("mmm", "0 1 2"),
            ("ppmipm", "0+1 2 3+4 5"),
            ("mpp", "0 1+2"),
            ("pdp", "0+2"),
            ("dmd", "1"),
            ("ddd", ""),
        ] {
            assert_eq!(groups(effects), expected, "{effects}");
        }
    }
}
