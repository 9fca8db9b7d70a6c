//! Nudges: an answer that shows a known weakness of models is sent back once, with a note, before
//! the turn ends with it.
//!
//! The weaknesses are recognized by their wording in English, without a judge: a false alarm
//! costs one more call to the model, and a missed one costs nothing.

use rockbot_core::chat::ChatResponse;
use rockbot_core::context::Origin;
use rockbot_core::turn::{FinishedCall, TurnStatus};

use super::AnswerFacts;
use super::answer::says_nothing;
use super::claims::claims_call;
use crate::turn::{Nudge, Nudges, Purpose, TurnStep};

impl Nudge {
    /// Returns the note to the model.
    pub(in crate::turn) fn text(self) -> &'static str {
        match self {
            Self::UnfinishedSetUp => {
                "You announced a step and did not take it. Do not describe what you will do: call the tool now, or \
                 give the complete answer if nothing is left to do."
            }
            // The model does not see its claim again.
            Self::HallucinatedCall => "Answer with a call of a tool: without a call, nothing is saved or done.",
            Self::LeakedSyntax => {
                "Your answer has the syntax of a tool call as text, so nothing was called. Make the call as a real \
                 tool call, or answer in plain words."
            }
            Self::UnexpectedCjk => {
                "Your answer has Chinese or Japanese text that the user did not ask for. Give the same answer again, \
                 completely in the language of the user's message."
            }
            Self::EmptyAnswer => {
                "Your last answer was empty. Give the complete answer to the user's message now, or call the tool that \
                 you need for it."
            }
            Self::ToolFailureGiveup => {
                "A tool failed, and you gave up. Try the call once more, correct its arguments, or use another tool; \
                 only if that fails too, tell the user exactly what failed."
            }
        }
    }
}

/// Examines an answer for a weakness that deserves a nudge.
///
/// Not when it is the last answer that the budget allows, and not when it must have a shape: then
/// its text is data, and a colon at the end means nothing.
pub(super) fn examine(facts: &AnswerFacts<'_>, response: &ChatResponse) -> Option<TurnStep> {
    if facts.is_last || facts.request.output.is_some() {
        return None;
    }
    let answer = Answer {
        text: &response.text,
        // A limit or a filter that cut all of an answer would cut the next answer, too.
        may_be_empty: response.finish.is_cut() || facts.progress.has_first_answer(),
        asked: &facts.request.content.text(),
        // The words of another turn tell of deeds that are done.
        may_claim: facts.request.origin != Origin::Subagent,
        has_tools: facts.has_tools,
        calls: facts.calls,
        round: facts.round(),
    };
    if let Some(nudge) = weakness(&answer, &facts.settings.nudges, &facts.progress.nudged) {
        return Some(TurnStep::AskModel(Purpose::Retry(nudge)));
    }
    // The model was told, and claims it again.
    let is_hollow = facts.progress.nudged.contains(&Nudge::HallucinatedCall) && answer.is_hollow();
    is_hollow.then(|| TurnStep::finish_with(TurnStatus::Answered, format!("{}\n\n{NOTHING_DONE}", response.text)))
}

/// The end of an answer that claims work that was not done, for the user.
const NOTHING_DONE: &str = "(No tool was called for this answer: nothing was saved, sent or changed.)";

/// The part of a turn that can show a weakness.
struct Answer<'a> {
    text: &'a str,
    /// `true` when an empty text is no weakness of the model.
    may_be_empty: bool,
    /// The user's message.
    asked: &'a str,
    /// `true` when words of the answer can be a claim.
    may_claim: bool,
    /// `true` when the model could have called a tool.
    has_tools: bool,
    /// The calls of this turn that ended.
    calls: &'a [FinishedCall],
    /// The calls of the last round, which a single answer made.
    round: &'a [FinishedCall],
}

impl Answer<'_> {
    /// Reports whether the answer claims a call, or its result, while no call of the turn
    /// succeeded.
    fn is_hollow(&self) -> bool {
        let has_effect = |call: &FinishedCall| !call.is_error || call.is_outcome_unknown;
        let may_claim = self.may_claim && self.has_tools && !self.calls.iter().any(has_effect);
        may_claim && claims_call(self.asked, self.text)
    }
}

/// Returns the first weakness of `answer` that is switched on and was not `given` as a nudge in
/// this turn.
///
/// The certain weaknesses come first: syntax and script are facts, while the other weaknesses are
/// guessed from the wording.
fn weakness(answer: &Answer<'_>, nudges: &Nudges, given: &[Nudge]) -> Option<Nudge> {
    let has_failed = answer.round.iter().any(|call| call.is_error);
    let judged = [
        (
            Nudge::EmptyAnswer,
            nudges.on_empty_answer && !answer.may_be_empty && says_nothing(answer.asked, answer.text),
        ),
        (
            Nudge::LeakedSyntax,
            nudges.on_leaked_syntax && leaks_syntax(answer.text),
        ),
        (
            Nudge::UnexpectedCjk,
            nudges.on_unexpected_cjk && has_cjk(answer.text) && !has_cjk(answer.asked),
        ),
        (
            Nudge::UnfinishedSetUp,
            nudges.on_unfinished_set_up && answer.has_tools && is_set_up(answer.text),
        ),
        (
            Nudge::HallucinatedCall,
            nudges.on_hallucinated_calls && answer.is_hollow(),
        ),
        (
            Nudge::ToolFailureGiveup,
            nudges.on_tool_failure_giveup && has_failed && gives_up(answer.text),
        ),
    ];
    let applies = |(nudge, applies): (Nudge, bool)| (applies && !given.contains(&nudge)).then_some(nudge);
    judged.into_iter().find_map(applies)
}

/// Reports whether a text ends as if something were to follow.
fn is_set_up(text: &str) -> bool {
    let text = text.trim_end();
    [":", "...", "…"].iter().any(|end| text.ends_with(end))
}

/// Reports whether a text contains a call: in the syntax that GPT models use internally, or as
/// JSON in a fence.
fn leaks_syntax(text: &str) -> bool {
    if text.split("```").skip(1).step_by(2).any(is_call) {
        return true;
    }
    // Every answer is searched, and few have an equals sign: searching for it is the fastest way to
    // exclude the rest.
    text.match_indices('=').any(|(at, _)| {
        let before = &text[..at];
        let after = &text[at + 1..];
        before.ends_with("to") && (after.starts_with("multi_tool_use.") || after.starts_with("functions."))
    })
}

/// Reports whether the content of a fence is the JSON of a call.
fn is_call(fenced: &str) -> bool {
    let json = fenced.strip_prefix("json").unwrap_or(fenced);
    let value: Option<serde_json::Value> = serde_json::from_str(json.trim()).ok();
    value.is_some_and(|value| value["name"].is_string() && value["arguments"].is_object())
}

/// Reports whether a text has three Chinese characters or kanji in a row. Fewer may be a quoted
/// name.
fn has_cjk(text: &str) -> bool {
    let is_cjk = |character: char| matches!(character, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
    let mut runs = text.split(|character| !is_cjk(character));
    !text.is_ascii() && runs.any(|run| run.chars().nth(2).is_some())
}

/// Reports whether a text gives up over a tool, in the words that models use.
fn gives_up(text: &str) -> bool {
    const WORDS: [&str; 8] = [
        "tool failure",
        "tool failed",
        "errored on both",
        "from the current tool state",
        "tool is not working",
        "tool returned an error",
        "unable to complete",
        "due to a tool error",
    ];
    let text = text.to_lowercase();
    WORDS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Nudges = Nudges {
        on_unfinished_set_up: true,
        on_hallucinated_calls: true,
        on_leaked_syntax: true,
        on_unexpected_cjk: true,
        on_tool_failure_giveup: true,
        on_repeated_calls: true,
        on_empty_answer: true,
    };

    fn call(is_error: bool) -> FinishedCall {
        FinishedCall::new("1", "mail", is_error)
    }

    fn check(text: &str, calls: &[FinishedCall], expected: Option<Nudge>) {
        let answer = Answer {
            text,
            may_be_empty: false,
            asked: "What is new?",
            may_claim: true,
            has_tools: true,
            calls,
            round: calls,
        };
        assert_eq!(weakness(&answer, &ALL, &[]), expected, "{text}");
    }

    #[test]
    fn each_weakness_has_its_nudge() {
        check("Let me look that up:", &[], Some(Nudge::UnfinishedSetUp));
        check(" \n", &[], Some(Nudge::EmptyAnswer));
        check("What is new?", &[], Some(Nudge::EmptyAnswer));
        check("One moment... \n", &[], Some(Nudge::UnfinishedSetUp));
        check("The function returned 391.", &[], Some(Nudge::HallucinatedCall));
        check(
            "The function returned 391.",
            &[call(true)],
            Some(Nudge::HallucinatedCall),
        );
        check("to=functions.mail {}", &[], Some(Nudge::LeakedSyntax));
        let fenced = "Use `mail`:\n```json\n{\"name\": \"mail\", \"arguments\": {\"to\": \"Ada\"}}\n```\nand wait.";
        check(fenced, &[], Some(Nudge::LeakedSyntax));
        check("The answer is 你好吗.", &[], Some(Nudge::UnexpectedCjk));
        check(
            "There was a tool failure, sorry.",
            &[call(true)],
            Some(Nudge::ToolFailureGiveup),
        );
        check(
            "One tool failed, sorry.",
            &[call(true), call(false)],
            Some(Nudge::ToolFailureGiveup),
        );
    }

    #[test]
    fn good_answers_are_left_alone() {
        for text in [
            "Done.",
            "The time is 10:30",
            "I have 3 apples.",
            "A tool failure is when …!",
            "你好 is a greeting.",
            "```json\n{\"name\": \"Ada\"}\n```",
            "I've added it.",
        ] {
            check(text, &[], None);
        }
        check("The function returned 391.", &[call(false)], None);
        let calls = [call(true), call(false)];
        let answer = Answer {
            text: "There was a tool failure, but it works now.",
            may_be_empty: false,
            asked: "What is new?",
            may_claim: true,
            has_tools: true,
            calls: &calls,
            round: &calls[1..],
        };
        assert_eq!(weakness(&answer, &ALL, &[]), None, "the round before failed");
    }

    #[test]
    fn a_nudge_is_given_once_and_only_where_it_makes_sense() {
        let answer = |has_tools, asked| Answer {
            text: "Let me see 你好吗:",
            may_be_empty: false,
            asked,
            may_claim: true,
            has_tools,
            calls: &[],
            round: &[],
        };
        assert_eq!(
            weakness(&answer(true, "hi"), &ALL, &[Nudge::UnexpectedCjk]),
            Some(Nudge::UnfinishedSetUp)
        );
        assert_eq!(weakness(&answer(false, "你好吗?"), &ALL, &[]), None);
        assert_eq!(
            weakness(
                &answer(true, "hi"),
                &ALL,
                &[Nudge::UnexpectedCjk, Nudge::UnfinishedSetUp]
            ),
            None
        );
    }
}
