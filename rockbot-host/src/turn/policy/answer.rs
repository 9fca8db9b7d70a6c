//! The answer as the end of a turn: its shape, the JSON in it, and the instructions that ask for
//! a better one.

use rockbot_core::chat::{ChatMessage, ChatResponse, FinishReason, OutputSchema, Provenance, Role};
use rockbot_core::tool::ArgumentSchema;
use rockbot_core::turn::{BudgetLimit, FinishedCall, TurnFailure, TurnStatus};

use super::{AnswerFacts, consult, ending};
use crate::turn::{Nudge, Purpose, TurnStep};

/// Examines whether an answer is one at all, and has the requested shape.
///
/// An empty answer after a follow-up leaves the first answer standing. A wrong shape is sent back
/// with the problem until the attempts are used up, and so is an empty answer to a request with a
/// shape, unless a limit or a filter cut all of it; any other empty answer fails the turn. An
/// answer to a request without a shape passes.
pub(super) fn examine(facts: &AnswerFacts<'_>, response: &ChatResponse) -> Option<TurnStep> {
    if says_nothing(&facts.request.content.text(), &response.text) {
        let is_cut = response.finish.is_cut();
        return Some(match facts.progress.has_first_answer() {
            true => facts.progress.finish_with_first(),
            false if facts.request.output.is_some() && !is_cut && may_reshape(facts) => {
                let problem = "it was empty".to_owned();
                TurnStep::AskModel(Purpose::Shape { problem })
            }
            false => no_answer(response, facts),
        });
    }
    let shape = facts.request.output.as_ref()?;
    let json = json_of(&response.text);
    let Some(problem) = problem(json, shape) else {
        let text = (json != response.text).then(|| json.to_owned());
        let status = status_of(response.finish);
        return Some(TurnStep::Finish { status, text });
    };
    if may_reshape(facts) {
        return Some(TurnStep::AskModel(Purpose::Shape { problem }));
    }
    let text = format!(
        "The model's answer does not have the shape `{}`: {problem}.",
        shape.name
    );
    Some(ending::failed(TurnFailure::Output, &text, facts.calls))
}

/// Reports whether an answer is empty, or the question itself, word for word.
pub(super) fn says_nothing(asked: &str, text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || (text.ends_with('?') && text == asked.trim())
}

/// Reports whether the model may be asked for the shape once more.
fn may_reshape(facts: &AnswerFacts<'_>) -> bool {
    !facts.is_last && facts.shape_attempts < facts.settings.max_shape_attempts
}

/// Ends the turn with an answer that passed all policies.
pub(in crate::turn) fn accept(response: &ChatResponse) -> Vec<TurnStep> {
    let notice = match response.finish {
        FinishReason::Length => Some("the answer was cut at the model's longest length"),
        FinishReason::ContentFilter => Some("the provider's content filter cut the answer"),
        _ => None,
    };
    let notice = notice.map(|text| TurnStep::Emit(text.to_owned()));
    let finish = TurnStep::finish_with_answer(status_of(response.finish));
    notice.into_iter().chain([finish]).collect()
}

/// Returns the status of a turn that ends with an answer. If the answer was cut, the turn is
/// partial.
fn status_of(finish: FinishReason) -> TurnStatus {
    match finish {
        FinishReason::Length => TurnStatus::Partial(BudgetLimit::AnswerLength),
        FinishReason::ContentFilter => TurnStatus::Partial(BudgetLimit::ContentFilter),
        _ => TurnStatus::Answered,
    }
}

/// Returns the host's instruction for a question; `None` when the conversation says enough.
///
/// It has the user's role, marked as the host's in its provenance: not every provider accepts
/// system messages after the first message.
pub(in crate::turn) fn instruction(purpose: &Purpose) -> Option<ChatMessage> {
    let text = match purpose {
        Purpose::Answer | Purpose::Evaluate(_) | Purpose::AssessFollowUp => return None,
        Purpose::Conclude(BudgetLimit::Repetition) => {
            "You make the same calls again, and their results do not change. \
             Do not call tools. Answer now from what you have: say what you tried, what failed, and what is not done."
                .to_owned()
        }
        Purpose::Conclude(limit) => format!(
            "The {limit} for this request is used up. Do not call tools. Answer now from what you have, \
             say what is done and what is not."
        ),
        Purpose::Shape { problem } => format!(
            "Give your answer again as JSON of the shape that was asked for, and nothing else. \
             The last one could not be used: {problem}."
        ),
        Purpose::Policy { message } => return Some(consult::message(message.clone())),
        Purpose::Correct { complaint } => format!(
            "Your answer was not accepted: {complaint} Give the complete answer again, corrected. The user has not \
             seen the last one."
        ),
        Purpose::Retry(nudge @ Nudge::HallucinatedCall) => nudge.text().to_owned(),
        Purpose::Retry(nudge) => format!("{INTERNAL} {}", nudge.text()),
        Purpose::Continue { reason } => format!(
            "{INTERNAL} Your answer does not complete the request: {reason} Go on: call the tools that are needed, and \
             then give the complete answer."
        ),
        Purpose::FollowUp { prompt } => format!(
            "{INTERNAL} The request is answered. One thing more may help, if your tools can do it without changing anything: \
             {prompt} Then tell the user in a few sentences what you found, without repeating your answer."
        ),
    };
    Some(ChatMessage::new(Role::User, text, Provenance::HOST))
}

/// The beginning of a note after an answer: without it a model thanks the user for the hint.
const INTERNAL: &str = "[Internal check, not from the user. Do not mention it.]";

/// Returns the JSON of an answer: the text itself, the content of its only code fence, or its
/// only object or list.
///
/// Models wrap JSON in words and fences even when they are asked not to. A text without JSON is
/// returned as it is.
pub(super) fn json_of(text: &str) -> &str {
    let text = text.trim();
    let candidates = [Some(text), fenced(text), among_words(text)];
    let mut json = candidates.into_iter().flatten().filter(|json| not_json(json).is_none());
    json.next().unwrap_or(text)
}

/// Returns the text between the first fence and the last fence; with more than two fences it is
/// not JSON.
fn fenced(text: &str) -> Option<&str> {
    let (_, inside) = text.split_once("```")?;
    let (inside, _) = inside.rsplit_once("```")?;
    Some(inside.strip_prefix("json").unwrap_or(inside).trim())
}

/// Returns the text from the first opening bracket to the last closing one; with several values
/// it is not JSON.
fn among_words(text: &str) -> Option<&str> {
    let begin = text.find(['{', '['])?;
    let end = text.rfind(['}', ']'])?;
    text.get(begin..=end)
}

fn not_json(text: &str) -> Option<String> {
    let parsed = serde_json::from_str::<serde::de::IgnoredAny>(text);
    parsed.err().map(|error| format!("it is not JSON: {error}"))
}

/// Maximum bytes of each result that an answer without words shows.
const MAX_RESULT: usize = 500;

/// Ends the turn without words of the model, with the results that its last calls returned.
fn no_answer(response: &ChatResponse, facts: &AnswerFacts<'_>) -> TurnStep {
    let why = match response.finish {
        FinishReason::Length => "its answer was cut before it said anything",
        FinishReason::ContentFilter => "the provider's content filter withheld its answer",
        _ if response.text.trim().is_empty() => "it returned an empty answer",
        _ => "it repeated the question",
    };
    let text = format!("The model gave no answer: {why}.");
    let results: String = facts
        .round()
        .iter()
        .filter_map(|call| result_line(call, facts))
        .collect();
    if results.is_empty() {
        return ending::failed(TurnFailure::NoAnswer, &text, facts.calls);
    }
    let text = format!("{text} Its last calls returned:{results}");
    TurnStep::finish_with(TurnStatus::Failed(TurnFailure::NoAnswer), text)
}

/// Returns the line of a call that succeeded, with the beginning of its result.
fn result_line(call: &FinishedCall, facts: &AnswerFacts<'_>) -> Option<String> {
    let mut messages = facts.messages.iter().rev();
    let result = messages.find(|message| message.tool_call_id.as_ref() == Some(&call.call))?;
    let text = result.text();
    let shown = &text[..text.floor_char_boundary(MAX_RESULT)];
    (!call.is_error && !shown.trim().is_empty()).then(|| format!("\n- {}: {shown}", call.tool))
}

/// Returns the reason why `json` does not have the shape.
fn problem(json: &str, shape: &OutputSchema) -> Option<String> {
    if let Some(problem) = not_json(json) {
        return Some(problem);
    }
    // A schema beyond the bounds of the checker, or not of an object, cannot be checked here; the
    // caller finds out when it deserializes the answer.
    let schema = ArgumentSchema::compile(&shape.schema).ok()?;
    schema.check(json).err().map(|error| of_answer(error.problems()))
}

/// Rewords the problems of arguments as the problems of an answer. The checker of tool arguments
/// is used for both.
fn of_answer(problems: &[String]) -> String {
    let problem = problems.join("; ").replace("the arguments", "the answer");
    problem.replace("a known argument", "a known member")
}
