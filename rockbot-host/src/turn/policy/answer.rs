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
            let text = format!("The model's answer does not have the shape `{}`: {problem}", shape.name);
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
        Purpose::Answer => return None,
        Purpose::Conclude(limit) => format!(
            "The {limit} for this request is used up. Do not call tools. Answer now from what you have, \
             say what is done and what is not."
        ),
        Purpose::Shape { problem } => format!(
            "Give your answer again as JSON of the shape that was asked for, and nothing else. \
             The last one could not be used: {problem}"
        ),
    };
    Some(ChatMessage::text_of(Role::User, text, Provenance::HOST))
}

/// The JSON of an answer: the text itself, or what its code fence holds.
pub(crate) fn json_of(text: &str) -> &str {
    let text = text.trim();
    let Some(fenced) = text.strip_prefix("```") else {
        return text;
    };
    let fenced = fenced.strip_prefix("json").unwrap_or(fenced);
    fenced.strip_suffix("```").unwrap_or(fenced).trim()
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
    // A schema beyond our bounds cannot be checked here; deserializing will tell.
    let schema = ArgumentSchema::compile(&shape.schema).ok()?;
    schema.check(json).err().map(|error| error.to_string())
}
