//! Converts an ended turn into feedback.

use std::collections::BTreeMap;

use rockbot_core::Digest;
use rockbot_core::store::{FeedbackEntry, FeedbackSignal};
use rockbot_core::turn::EndedTurn;

use super::correction;

/// Maximum number of tools reported for a turn: the tools with the most failures.
const MAX_TOOLS: usize = 8;

/// Maximum length of a correction, in characters.
const DETAIL: usize = 200;

/// Returns the feedback about a turn. It is deterministic: the same turn gives the same entries
/// with the same ids.
pub(super) fn entries(turn: &EndedTurn<'_>) -> Vec<FeedbackEntry> {
    corrected(turn).into_iter().chain(failures(turn)).collect()
}

fn corrected(turn: &EndedTurn<'_>) -> Option<FeedbackEntry> {
    let answer = turn.previous_answer.filter(|_| turn.is_of_a_person())?;
    let how = correction(&turn.request.content.text(), answer)?;
    let detail: String = turn.request.content.words().chars().take(DETAIL).collect();
    Some(entry(turn, FeedbackSignal::Correction, "", how.summary().to_owned()).with_detail(detail))
}

/// Returns the failures of tools. Their error texts are left out, because they are untrusted.
fn failures(turn: &EndedTurn<'_>) -> impl Iterator<Item = FeedbackEntry> {
    let mut tools: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for call in &turn.outcome.calls {
        let (failed, all) = tools.entry(call.tool.as_str()).or_default();
        *failed += usize::from(call.is_error);
        *all += 1;
    }
    let mut failing: Vec<_> = tools.into_iter().filter(|(_, (failed, _))| *failed > 0).collect();
    failing.sort_by_key(|(_, (failed, _))| std::cmp::Reverse(*failed));
    failing.into_iter().take(MAX_TOOLS).map(|(tool, (failed, all))| {
        let summary = format!("The tool `{tool}` failed in {failed} of {all} calls of a turn.");
        entry(turn, FeedbackSignal::ToolFailure, tool, summary)
    })
}

fn entry(turn: &EndedTurn<'_>, signal_type: FeedbackSignal, about: &str, summary: String) -> FeedbackEntry {
    let kind = u8::from(signal_type).to_string();
    FeedbackEntry::new(
        Digest::of([turn.outcome.turn.as_str(), &kind, about]).short(),
        turn.request.session.clone(),
        signal_type,
        summary,
        turn.at,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rockbot_core::Timestamp;
    use rockbot_core::context::Origin;
    use rockbot_core::turn::{FinishedCall, TurnOutcome, TurnRequest, TurnStatus};

    fn outcome(calls: &[(&str, bool)]) -> TurnOutcome {
        let call =
            |(at, (tool, is_error)): (usize, &(&str, bool))| FinishedCall::new(format!("call_{at}"), *tool, *is_error);
        let mut outcome = TurnOutcome::new("turn".into(), TurnStatus::Answered, "Done.");
        outcome.calls = calls.iter().enumerate().map(call).collect();
        outcome
    }

    #[track_caller]
    fn check(request: &TurnRequest, answer: Option<&str>, calls: &[(&str, bool)], expected: &[&str]) {
        let outcome = outcome(calls);
        let turn = EndedTurn::new(request, &outcome, Timestamp::from_millis(7)).after(answer);
        let summaries: Vec<_> = entries(&turn).into_iter().map(|entry| entry.summary).collect();
        assert_eq!(summaries, expected);
    }

    #[test]
    fn a_correction_is_kept_with_its_beginning() {
        let request = TurnRequest::new("s", "m", format!("No, I meant {}.", "x".repeat(300)));
        let outcome = outcome(&[]);
        let turn = EndedTurn::new(&request, &outcome, Timestamp::from_millis(7)).after(Some("It rains."));
        let expected = FeedbackEntry::new(
            Digest::of(["turn", "0", ""]).short(),
            "s",
            FeedbackSignal::Correction,
            "The user had meant something else.",
            Timestamp::from_millis(7),
        )
        .with_detail(request.content.text()[..DETAIL].to_owned());
        assert_eq!(entries(&turn), [expected]);
    }

    #[test]
    fn only_people_correct() {
        let wrong = "The user said that the answer was wrong.";
        let request = TurnRequest::new("s", "m", "That's wrong.");
        check(&request, Some("It rains."), &[], &[wrong]);
        check(&request, None, &[], &[]);
        let scheduled = request.clone().with_origin(Origin::Scheduled);
        check(&scheduled, Some("It rains."), &[], &[]);
        let asked_by_a_turn = request.with_parent("other", 1);
        check(&asked_by_a_turn, Some("It rains."), &[], &[]);
    }

    #[test]
    fn each_tool_that_failed_is_told_once() {
        let request = TurnRequest::new("s", "m", "Go.");
        let calls = [("a", true), ("b", false), ("c", true), ("c", false), ("c", true)];
        let failed = |tool, failed, all| format!("The tool `{tool}` failed in {failed} of {all} calls of a turn.");
        check(&request, None, &calls, &[&failed("c", 2, 3), &failed("a", 1, 1)]);
        let many: Vec<_> = (0..20).map(|n| format!("tool{n:02}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), true)).collect();
        let expected: Vec<_> = many[..MAX_TOOLS].iter().map(|(name, _)| failed(name, 1, 1)).collect();
        check(
            &request,
            None,
            &many,
            &expected.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }
}
