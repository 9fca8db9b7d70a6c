//! The choice of the tool that a question clearly means.

use rockbot_core::ToolName;
use rockbot_core::chat::ToolChoice;
use rockbot_core::tool::{ToolRegistration, ToolView};

use super::arguments::{Evidence, fill};
use super::words;

/// The choice that a question leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice<'a> {
    /// Call this tool with these arguments.
    Call { tool: &'a ToolName, arguments: String },
    /// The question seems to mean this tool, and lacks this argument.
    Missing { tool: &'a ToolName, argument: String },
    /// No tool.
    Nothing,
}

/// Minimum score of a tool that is called without being required: one word of its name, or two of
/// its description.
const ENOUGH: usize = 2;

/// Chooses the tool with the highest score; of equal scores, the first tool.
pub(super) fn choose<'a>(question: &str, tools: &'a ToolView, choice: &ToolChoice) -> Choice<'a> {
    let mut calls = Best::default();
    let mut attempts = Best::default();
    for entry in tools.entries() {
        let tool = entry.registration();
        let enough = match choice {
            ToolChoice::None => continue,
            ToolChoice::Tool(name) if *name != tool.name => continue,
            ToolChoice::Tool(_) | ToolChoice::Required => 0,
            ToolChoice::Auto => ENOUGH,
        };
        let named = named(question, tool);
        let filled = fill(question, tool);
        let tool = &tool.name;
        match filled {
            Ok((arguments, evidence)) => {
                calls.offer(named + weight(evidence), enough, Choice::Call { tool, arguments });
            }
            Err(argument) => attempts.offer(named, enough, Choice::Missing { tool, argument }),
        }
    }
    calls.choice.or(attempts.choice).unwrap_or(Choice::Nothing)
}

/// The choice with the highest score so far.
#[derive(Default)]
struct Best<'a> {
    score: usize,
    choice: Option<Choice<'a>>,
}

impl<'a> Best<'a> {
    fn offer(&mut self, score: usize, enough: usize, choice: Choice<'a>) {
        if score >= enough && (self.choice.is_none() || score > self.score) {
            *self = Self {
                score,
                choice: Some(choice),
            };
        }
    }
}

/// Returns the score of the question's words for the tool: words of its name count three times.
fn named(question: &str, tool: &ToolRegistration) -> usize {
    let mut asked = words::telling(question);
    asked.sort();
    asked.dedup();
    let name = words::telling(tool.name.as_str());
    let description = words::telling(&tool.description);
    let score = |word: &String| match (name.contains(word), description.contains(word)) {
        (true, _) => 3,
        (false, true) => 1,
        (false, false) => 0,
    };
    asked.iter().map(score).sum()
}

/// Returns the score of the evidence. An expression is as good as a word of the name, because it
/// asks to be computed; a file or a link does not tell the wanted action.
fn weight(evidence: Evidence) -> usize {
    match evidence {
        Evidence::Expression => 3,
        Evidence::Other => 0,
    }
}
