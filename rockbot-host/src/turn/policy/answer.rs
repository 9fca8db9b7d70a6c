//! When an answer in words ends the turn, and what to do when it has the wrong shape.

use rockbot_core::chat::{ChatMessage, ChatResponse, FinishReason, OutputSchema, Provenance, Role};
use rockbot_core::tool::ArgumentSchema;
use rockbot_core::turn::{TurnFailure, TurnStatus};

use crate::turn::{Purpose, TurnStep};

/// The end of the turn, or one more try when the answer must have a shape that it has not.
pub(in crate::turn) fn settle(response: &ChatResponse, shape: Option<&OutputSchema>, tries_left: u32) -> Vec<TurnStep> {
    if response.text.trim().is_empty() {
        return vec![no_answer(response.finish)];
    }
    let Some(shape) = shape else {
        return answered(response);
    };
    let json = json_of(&response.text);
    match problem(json, shape) {
        None => vec![TurnStep::Finish {
            status: TurnStatus::Answered,
            text: (json != response.text).then(|| json.to_owned()),
        }],
        Some(problem) if tries_left > 0 => vec![TurnStep::AskModel(Purpose::Shape { problem })],
        Some(problem) => {
            let text = format!(
                "The model's answer does not have the shape `{}`: {problem}.",
                shape.name
            );
            vec![TurnStep::Finish {
                status: TurnStatus::Failed(TurnFailure::Output),
                text: Some(text),
            }]
        }
    }
}

/// What the model is told together with its next question, if anything.
///
/// It is a user's message from the host: not every provider takes system messages this late.
pub(in crate::turn) fn instruction(purpose: &Purpose) -> Option<ChatMessage> {
    let text = match purpose {
        Purpose::Answer | Purpose::Evaluate(_) | Purpose::AssessFollowUp => return None,
        Purpose::Conclude(limit) => format!(
            "The {limit} for this request is used up. Do not call tools. Answer now from what you have, \
             say what is done and what is not."
        ),
        Purpose::Shape { problem } => format!(
            "Give your answer again as JSON of the shape that was asked for, and nothing else. \
             The last one could not be used: {problem}."
        ),
        Purpose::Retry(nudge) => nudge.text().to_owned(),
        Purpose::Continue { reason } => format!(
            "Your answer does not complete the request: {reason} Go on: call the tools that are needed, and then give \
             the complete answer."
        ),
        Purpose::FollowUp { prompt } => format!(
            "The request is answered. One thing more may help, if your tools can do it without changing anything: \
             {prompt} Then tell the user in a few sentences what you found, without repeating your answer."
        ),
    };
    Some(ChatMessage::text_of(Role::User, text, Provenance::HOST))
}

/// The JSON of an answer: the text itself, what its only code fence holds, or the only object or list among its words.
pub(super) fn json_of(text: &str) -> &str {
    let text = text.trim();
    let found = [Some(text), fenced(text), among_words(text)];
    let mut json = found.into_iter().flatten().filter(|json| not_json(json).is_none());
    json.next().unwrap_or(text)
}

/// What stands between the first fence and the last one; with more than two that is no JSON.
fn fenced(text: &str) -> Option<&str> {
    let (_, inside) = text.split_once("```")?;
    let (inside, _) = inside.rsplit_once("```")?;
    Some(inside.strip_prefix("json").unwrap_or(inside).trim())
}

/// From where the first object or list begins to where the last one ends; with more than one that is no JSON.
fn among_words(text: &str) -> Option<&str> {
    let (begin, end) = (text.find(['{', '['])?, text.rfind(['}', ']'])?);
    text.get(begin..=end)
}

fn not_json(text: &str) -> Option<String> {
    let parsed = serde_json::from_str::<serde::de::IgnoredAny>(text);
    parsed.err().map(|error| format!("it is not JSON: {error}"))
}

fn answered(response: &ChatResponse) -> Vec<TurnStep> {
    let cut = response.finish == FinishReason::Length;
    let note = cut.then(|| TurnStep::Emit("the answer was cut at the model's longest length".to_owned()));
    let finish = TurnStep::Finish {
        status: TurnStatus::Answered,
        text: None,
    };
    note.into_iter().chain([finish]).collect()
}

fn no_answer(finish: FinishReason) -> TurnStep {
    let why = match finish {
        FinishReason::Length => "its answer was cut before it said anything",
        FinishReason::ContentFilter => "the provider's content filter withheld its answer",
        _ => "it returned an empty answer",
    };
    let text = format!("The model gave no answer: {why}.");
    TurnStep::Finish {
        status: TurnStatus::Failed(TurnFailure::NoAnswer),
        text: Some(text),
    }
}

/// What keeps `json` from having the shape, if anything.
fn problem(json: &str, shape: &OutputSchema) -> Option<String> {
    if let Some(problem) = not_json(json) {
        return Some(problem);
    }
    // A schema beyond our bounds, or not of an object, cannot be checked here; deserializing will tell.
    let schema = ArgumentSchema::compile(&shape.schema).ok()?;
    schema.check(json).err().map(|error| of_answer(error.problems()))
}

/// The problems of arguments as those of an answer.
fn of_answer(problems: &[String]) -> String {
    let problem = problems.join("; ").replace("the arguments", "the answer");
    problem.replace("a known argument", "a known member")
}
