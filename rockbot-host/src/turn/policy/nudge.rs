//! When an answer in words is not one yet: the model is told so, once, before the turn ends with it.

use rockbot_core::turn::FinishedCall;
use serde::{Deserialize, Serialize};

/// Which weaknesses of models are answered with a nudge. Each nudge costs one model call, at most once in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nudges {
    /// The model says what it will do next, and does not do it: its words end in `:` or `...`. Default true.
    pub on_unfinished_set_up: bool,
    /// The model claims that it did something, and called no tool. Default false.
    pub on_hallucinated_calls: bool,
    /// The model writes the syntax of its tool calls into its words (`to=functions.…`). Default false.
    pub on_leaked_syntax: bool,
    /// The model writes Chinese or Japanese where nobody else did. Default false: right for those who speak neither.
    pub on_unexpected_cjk: bool,
    /// A tool failed, and the model gives up instead of trying again. Default true.
    pub on_tool_failure_giveup: bool,
    /// The model repeats a call whose result does not change. Default true; costs no model call.
    pub on_repeated_calls: bool,
}

impl Default for Nudges {
    fn default() -> Self {
        Self {
            on_unfinished_set_up: true,
            on_hallucinated_calls: false,
            on_leaked_syntax: false,
            on_unexpected_cjk: false,
            on_tool_failure_giveup: true,
            on_repeated_calls: true,
        }
    }
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Nudge {
    /// It announces a step and does not take it.
    UnfinishedSetUp,
    /// It claims an action that never happened.
    HallucinatedCall,
    /// It holds the syntax of a tool call.
    LeakedSyntax,
    /// It is in a script that nobody else used.
    UnexpectedCjk,
    /// It gives up over a tool that failed.
    ToolFailureGiveup,
}

impl Nudge {
    /// What the model is told.
    pub(in crate::turn) fn text(self) -> &'static str {
        match self {
            Self::UnfinishedSetUp => {
                "You announced a step and did not take it. Do not describe what you will do: call the tool now, or \
                 give the complete answer if nothing is left to do."
            }
            Self::HallucinatedCall => {
                "You say that you did something, but you called no tool in this turn, so nothing happened. Call the \
                 tool now, or say honestly that it was not done."
            }
            Self::LeakedSyntax => {
                "Your answer holds the syntax of a tool call as text, so nothing was called. Make the call as a real \
                 tool call, or answer in plain words."
            }
            Self::UnexpectedCjk => {
                "Your answer holds Chinese or Japanese text that nobody asked for. Give the same answer again, \
                 completely in the language of the user's message."
            }
            Self::ToolFailureGiveup => {
                "A tool failed, and you gave up. Try the call once more, correct its arguments, or use another tool; \
                 only if that fails too, tell the user exactly what failed."
            }
        }
    }
}

/// What an answer in words is judged by.
pub(in crate::turn) struct Words<'a> {
    pub(in crate::turn) text: &'a str,
    /// What the user said.
    pub(in crate::turn) asked: &'a str,
    /// Whether the model could have called a tool.
    pub(in crate::turn) has_tools: bool,
    /// The calls of this turn that ended.
    pub(in crate::turn) calls: &'a [FinishedCall],
}

/// The nudge that `words` deserve, if any: the first that applies and was not `given` in this turn.
pub(in crate::turn) fn of(words: &Words<'_>, nudges: &Nudges, given: &[Nudge]) -> Option<Nudge> {
    let last_failed = words.calls.last().is_some_and(|call| call.is_error);
    let judged = [
        (Nudge::LeakedSyntax, nudges.on_leaked_syntax && leaks_syntax(words.text)),
        (
            Nudge::UnexpectedCjk,
            nudges.on_unexpected_cjk && has_cjk(words.text) && !has_cjk(words.asked),
        ),
        (
            Nudge::UnfinishedSetUp,
            nudges.on_unfinished_set_up && words.has_tools && is_set_up(words.text),
        ),
        (
            Nudge::HallucinatedCall,
            nudges.on_hallucinated_calls && words.has_tools && words.calls.is_empty() && claims_action(words.text),
        ),
        (
            Nudge::ToolFailureGiveup,
            nudges.on_tool_failure_giveup && last_failed && gives_up(words.text),
        ),
    ];
    let applies = |(nudge, applies): (Nudge, bool)| (applies && !given.contains(&nudge)).then_some(nudge);
    judged.into_iter().find_map(applies)
}

/// Whether a text ends as if something were to follow.
fn is_set_up(text: &str) -> bool {
    let text = text.trim_end();
    [":", "...", "…"].iter().any(|end| text.ends_with(end))
}

/// The syntax that GPT models write when they forget that they call.
fn leaks_syntax(text: &str) -> bool {
    // Every answer is looked at, and hardly any has an equals sign.
    text.match_indices('=').any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        before.ends_with("to") && (after.starts_with("multi_tool_use.") || after.starts_with("functions."))
    })
}

/// Three Chinese characters, or kanji, in a row.
fn has_cjk(text: &str) -> bool {
    let is_cjk = |character: char| matches!(character, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
    let mut runs = text.split(|character| !is_cjk(character));
    !text.is_ascii() && runs.any(|run| run.chars().nth(2).is_some())
}

/// Whether a text says that something was done, in the words that models use.
fn claims_action(text: &str) -> bool {
    const DONE: [&str; 10] = [
        "cancelled",
        "scheduled",
        "created",
        "updated",
        "rescheduled",
        "deleted",
        "removed",
        "completed",
        "added",
        "saved",
    ];
    let text = text.to_lowercase().replace('’', "'");
    let follows = |subject: &str| {
        text.match_indices(subject).any(|(at, _)| {
            let rest = text[at + subject.len()..].trim_start();
            let rest = rest.strip_prefix("successfully ").unwrap_or(rest);
            DONE.iter().any(|done| rest.starts_with(done))
        })
    };
    follows("i've ") || follows("i have ") || text.contains("has been dispatched")
}

/// Whether a text gives up over a tool, in the words that models use.
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
    };

    fn call(is_error: bool) -> FinishedCall {
        FinishedCall {
            call: "1".into(),
            tool: "mail".into(),
            is_error,
        }
    }

    fn check(text: &str, calls: &[FinishedCall], expected: Option<Nudge>) {
        let words = Words {
            text,
            asked: "What is new?",
            has_tools: true,
            calls,
        };
        assert_eq!(of(&words, &ALL, &[]), expected, "{text}");
    }

    #[test]
    fn each_weakness_has_its_nudge() {
        check("Let me look that up:", &[], Some(Nudge::UnfinishedSetUp));
        check("One moment... \n", &[], Some(Nudge::UnfinishedSetUp));
        check(
            "I've successfully scheduled the meeting.",
            &[],
            Some(Nudge::HallucinatedCall),
        );
        check("I’ve added it.", &[], Some(Nudge::HallucinatedCall));
        check("to=functions.mail {}", &[], Some(Nudge::LeakedSyntax));
        check("The answer is 你好吗.", &[], Some(Nudge::UnexpectedCjk));
        check(
            "There was a tool failure, sorry.",
            &[call(true)],
            Some(Nudge::ToolFailureGiveup),
        );
    }

    #[test]
    fn good_answers_are_left_alone() {
        for text in [
            "Done.",
            "The time is 10:30",
            "I have 3 apples.",
            "",
            "A tool failure is when …!",
            "你好 is a greeting.",
        ] {
            check(text, &[], None);
        }
        check("I've added it.", &[call(false)], None);
        check(
            "There was a tool failure, but it works now.",
            &[call(true), call(false)],
            None,
        );
    }

    #[test]
    fn a_nudge_is_given_once_and_only_where_it_makes_sense() {
        let words = |has_tools, asked| Words {
            text: "Let me see 你好吗:",
            asked,
            has_tools,
            calls: &[],
        };
        assert_eq!(
            of(&words(true, "hi"), &ALL, &[Nudge::UnexpectedCjk]),
            Some(Nudge::UnfinishedSetUp)
        );
        assert_eq!(of(&words(false, "你好吗?"), &ALL, &[]), None);
        assert_eq!(
            of(
                &words(true, "hi"),
                &ALL,
                &[Nudge::UnexpectedCjk, Nudge::UnfinishedSetUp]
            ),
            None
        );
    }
}
