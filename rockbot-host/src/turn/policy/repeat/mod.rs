//! Detection of loops: a model that makes the same calls again, with the same results, reads a
//! note about it; then the call is refused with its earlier result, and then the turn ends.
//!
//! Calls are the same if their arguments are nearly equal: white space, the order of keys, the
//! form of numbers and punctuation at the end of texts do not count. A loop may have up to
//! [`MAX_PERIOD`] calls that alternate. A call that fails in the same way again and again is a
//! loop, too, even with other calls in between.
//!
//! A loop of calls is refused by a recorded step (`RefuseRepeats`): a replay must not judge
//! again. Calls that fail get three rounds, others five times as many, since they may wait for
//! something.

mod canonical;

use std::collections::VecDeque;

use rockbot_core::CallId;
use rockbot_core::chat::ToolCall;

use canonical::{Canonical, digest, digest_of_result};

/// Number of the equal round whose result is the first to carry the note. Two equal rounds are
/// common: models check a result once more before they rely on it.
const NOTE_FROM: usize = 3;

/// Number of the equal round that is refused, and of the round that ends the turn, when its calls
/// fail.
const REFUSE_FROM: usize = 4;
const END_FROM: usize = 5;

/// The same three numbers for a failing call with other calls in between, which may be attempts
/// to mend it.
const NOTE_APART: usize = 4;
const REFUSE_APART: usize = 6;
const END_APART: usize = 7;

/// Factor of both numbers for calls that succeed: they may wait for something to change.
const PATIENCE: usize = 5;

/// Maximum number of calls that alternate in a loop.
const MAX_PERIOD: usize = 3;

/// Number of calls that are remembered: enough to see the end of the longest loop of calls that
/// succeed.
const MAX_CALLS: usize = PATIENCE * END_FROM * MAX_PERIOD;

/// Number of bytes of the earlier result that a refused call returns.
const MAX_REFUSAL_BYTES: usize = 4_000;

const NOTE: &str = "\n[note: you have made this call several times, and its result does not change. Do something else, or answer \
     with what you have.]";

/// The end of the result of a call that was refused; before it stands the earlier result.
const REFUSED: &str = "\n[note: this call was not made again, because its result did not change so far. \
     The next one like it ends this turn: do something else, or answer with what you have.]";

/// The decision about a call that goes on with a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::turn) enum Verdict {
    /// The call is refused, with the result of this earlier call.
    Refuse(CallId),
    /// The turn ends.
    End,
}

/// The last calls of a turn, the oldest first.
#[derive(Debug, Clone, Default)]
pub(in crate::turn) struct Repeats {
    calls: VecDeque<PastCall>,
}

#[derive(Debug, Clone)]
struct PastCall {
    id: CallId,
    /// Digests of the call and of its result.
    call: u64,
    result: u64,
    failed: bool,
}

impl Repeats {
    /// Applies a call that returned `content`, and returns the note for the model if it repeats itself.
    pub(in crate::turn) fn observe(&mut self, call: &ToolCall, content: &str, failed: bool) -> Option<&'static str> {
        let refused = content.strip_suffix(REFUSED);
        let past = PastCall {
            id: call.id.clone(),
            call: digest_of(call),
            result: digest_of_result(refused.unwrap_or(content)),
            failed: failed || refused.is_some(),
        };
        if self.calls.len() == MAX_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(past);
        let times = (1..=MAX_PERIOD)
            .map(|period| self.rounds(period, self.calls.len()))
            .max();
        let fails = |past| self.failures(past) >= NOTE_APART;
        let repeats = times >= Some(NOTE_FROM) || self.calls.back().is_some_and(fails);
        (refused.is_none() && repeats).then_some(NOTE)
    }

    /// Decides about a call that the model wants to make now.
    pub(in crate::turn) fn verdict(&self, call: &ToolCall) -> Option<Verdict> {
        // Few turns come this far, so a call is digested for those turns alone.
        if self.calls.len() + 1 < REFUSE_FROM {
            return None;
        }
        let wanted = digest_of(call);
        let in_rounds = (1..=MAX_PERIOD).find_map(|period| {
            let earlier = self.calls.len().checked_sub(period)?;
            let fails = self.calls.range(earlier..).all(|past| past.failed);
            let patience = if fails { 1 } else { PATIENCE };
            // The call itself begins a new round, if all before it were complete.
            let times = self.rounds(period, self.calls.len()) + 1;
            let earlier = &self.calls[earlier];
            match times {
                _ if earlier.call != wanted => None,
                times if times >= END_FROM * patience => Some(Verdict::End),
                times if times >= REFUSE_FROM * patience => Some(Verdict::Refuse(earlier.id.clone())),
                _ => None,
            }
        });
        in_rounds.or_else(|| self.verdict_apart(wanted))
    }

    /// Decides about a call with this digest, with other calls in between.
    fn verdict_apart(&self, wanted: u64) -> Option<Verdict> {
        let earlier = self.calls.iter().rfind(|past| past.call == wanted)?;
        match self.failures(earlier) + 1 {
            times if times >= END_APART => Some(Verdict::End),
            times if times >= REFUSE_APART => Some(Verdict::Refuse(earlier.id.clone())),
            _ => None,
        }
    }

    /// Returns how often calls like `last` failed in a row with the same result, counted from the
    /// newest.
    fn failures(&self, last: &PastCall) -> usize {
        let same = self.calls.iter().rev().filter(|past| past.call == last.call);
        same.take_while(|past| past.failed && past.result == last.result)
            .count()
    }

    /// Returns the number of equal rounds of `period` calls at the end of the first `end` calls.
    fn rounds(&self, period: usize, end: usize) -> usize {
        let same = |at: &usize| {
            let one = &self.calls[*at];
            let other = &self.calls[*at - period];
            one.call == other.call && one.result == other.result
        };
        let same = (period..end).rev().take_while(same).count();
        same / period + usize::from(end >= period)
    }
}

/// Returns the result of a refused call whose earlier result was `content`.
pub(in crate::turn) fn refusal(content: &str) -> String {
    let content = content
        .strip_suffix(REFUSED)
        .or_else(|| content.strip_suffix(NOTE))
        .unwrap_or(content);
    format!(
        "{}{REFUSED}",
        &content[..content.floor_char_boundary(MAX_REFUSAL_BYTES)]
    )
}

fn digest_of(call: &ToolCall) -> u64 {
    let arguments: Result<Canonical, _> = serde_json::from_str(&call.arguments);
    // Arguments that are no JSON count as they are.
    let arguments = arguments.map_or_else(|_| digest(call.arguments.trim()), |canonical| canonical.0);
    digest(&(call.name.as_str(), arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: usize, tool: &str, arguments: &str) -> ToolCall {
        ToolCall::new(id.to_string(), tool, arguments)
    }

    /// Makes the calls `(tool, arguments, result)` in this order, and returns for each `n` if it
    /// carried the note, `r` if it was refused, `e` if it ended the turn and so the calls, and `.`
    /// otherwise.
    fn made(calls: &[(&str, &str, &str)], failed: bool) -> String {
        let mut repeats = Repeats::default();
        let mut marks = String::new();
        for (id, (tool, arguments, result)) in calls.iter().enumerate() {
            let call = call(id, tool, arguments);
            let content = match repeats.verdict(&call) {
                Some(Verdict::End) => return marks + "e",
                Some(Verdict::Refuse(_)) => refusal(result),
                None => (*result).to_owned(),
            };
            let note = repeats.observe(&call, &content, failed);
            marks.push(if content.ends_with(REFUSED) {
                'r'
            } else {
                note.map_or('.', |_| 'n')
            });
        }
        marks
    }

    fn check(results: &[&str], expected: &str) {
        let calls: Vec<_> = results.iter().map(|result| ("look", "{}", *result)).collect();
        assert_eq!(made(&calls, false), expected, "{results:?}");
    }

    #[test]
    fn the_third_equal_result_carries_the_note() {
        check(&["a", "a", "a", "a", "b", "a"], "..nn..");
    }

    #[test]
    fn times_and_ids_do_not_count() {
        let results = ["at 10:01 deadbeef42", "at 10:02 deadbeef43", "at 11:59 cafebabe00"];
        check(&results, "..n");
        check(&["red", "green", "blue"], "...");
    }

    #[test]
    fn a_failing_call_is_noted_then_refused_and_then_ends_the_turn() {
        assert_eq!(made(&[("look", "{}", "no such file"); 9], true), "..nre");
        let waits = format!("..{}re", "n".repeat(17));
        assert_eq!(made(&[("look", "{}", "still waiting"); 30], false), waits);
    }

    #[test]
    fn calls_that_alternate_are_a_loop_too() {
        let round = [("a", "{}", "x"), ("b", "{}", "y")];
        assert_eq!(made(&round.repeat(9), true), ".....nrre");
        let others = [
            ("edit", "1"),
            ("test", ""),
            ("edit", "2"),
            ("test", ""),
            ("edit", "3"),
            ("test", ""),
        ];
        let others: Vec<_> = others
            .iter()
            .map(|(tool, arguments)| (*tool, *arguments, "done"))
            .collect();
        assert_eq!(made(&others, true), "......");
    }

    #[test]
    fn a_call_that_fails_between_others_is_a_loop_too() {
        let numbers: Vec<_> = (0..20).map(|number| number.to_string()).collect();
        let others = || numbers.iter().map(|number| ("other", number.as_str(), "no"));
        let failing: Vec<_> = others()
            .flat_map(|other| [("look", "{}", "no such file"), other])
            .collect();
        assert_eq!(made(&failing, true), "......n.n.r.e");
        assert_eq!(made(&failing, false), ".".repeat(40));
        let looks = ["no such file", "no such file", "no such file", "found"].repeat(5);
        let mended = looks.iter().zip(others());
        let mended: Vec<_> = mended
            .flat_map(|(found, other)| [("look", "{}", *found), other])
            .collect();
        assert_eq!(made(&mended, true), ".".repeat(40));
    }

    #[test]
    fn nearly_equal_arguments_are_equal() {
        for (one, other) in [
            (r#"{"a":1,"b":"x"}"#, r#"{ "b": "x", "a": 1.0 }"#),
            (r#"{"q":"cats and dogs"}"#, r#"{"q":" cats  and dogs."}"#),
            (r#"{"n":"10"}"#, r#"{"n":10}"#),
            (r#"{"a":[{"x":1,"y":2}]}"#, r#"{"a":[{"y":2,"x":1e0}]}"#),
            ("{}", r#"{"a":null}"#),
        ] {
            assert_eq!(digest_of(&call(1, "t", one)), digest_of(&call(2, "t", other)), "{one}");
        }
        for (one, other) in [
            (r#"{"q":"cats"}"#, r#"{"q":"dogs"}"#),
            (r#"{"q":"Cats"}"#, r#"{"q":"cats"}"#),
            (r#"{"a":1}"#, r#"{"a":2}"#),
            ("{}", r#"{"a":0}"#),
        ] {
            assert_ne!(digest_of(&call(1, "t", one)), digest_of(&call(2, "t", other)), "{one}");
        }
    }
}
