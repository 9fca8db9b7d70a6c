//! Chat completions.

use std::collections::VecDeque;

use axum::Json;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use rockbot_core::turn::TurnProgress;
use serde::Deserialize;
use serde_json::{Value, json};

use super::conversation::{Conversation, Message};
use super::params::{IgnoredTools, Params, Place, Texts};
use super::usage::{answered, finish_reason, mark, of_chat};
use crate::asked::{AskedTurn, SaidText};
use crate::door::{Caller, JsonBody};
use crate::error::WebError;
use crate::sse::{self, EventForm, json as json_event};

/// A request. Members that no answer depends on are not read.
#[derive(Deserialize)]
pub(super) struct ChatBody {
    model: String,
    messages: Vec<Message>,
    #[serde(default)]
    stream: bool,
    stream_options: Option<StreamOptions>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    seed: Option<i64>,
    stop: Option<Texts>,
    reasoning_effort: Option<String>,
    response_format: Option<Value>,
    n: Option<u32>,
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    functions: Vec<Value>,
    tool_choice: Option<Value>,
    function_call: Option<Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// Answers a conversation.
pub(super) async fn create(
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ChatBody>,
) -> Result<Response, WebError> {
    let tools = IgnoredTools::of(&body.tools, body.tool_choice.as_ref())?;
    let functions = IgnoredTools::of(&body.functions, body.function_call.as_ref())?;
    Ok(tools.and(functions).noted(answer(caller, headers, body).await?))
}

async fn answer(caller: Caller, headers: HeaderMap, body: ChatBody) -> Result<Response, WebError> {
    if body.n.is_some_and(|n| n != 1) {
        return Err(WebError::invalid("the agent gives one answer: leave `n` out"));
    }
    let conversation = Conversation::read(None, body.messages)?;
    let place = Place::of(&caller, &headers);
    let request = place.request(&caller, &body.model, conversation)?;
    let request = Params {
        temperature: body.temperature,
        top_p: body.top_p,
        max_tokens: body.max_completion_tokens.or(body.max_tokens),
        seed: body.seed,
        stop: body.stop,
        effort: body.reasoning_effort,
        format: body.response_format,
    }
    .apply(request)?;
    let permit = caller.take_stream()?;
    caller.count_message().await?;
    let asked = AskedTurn::start(&caller, request, place.is_repeatable).await?;
    let completion = Completion::new(&caller, &asked, body.model);
    if body.stream {
        let events = asked.events().await?;
        let form = Chunks {
            completion,
            asked,
            text: SaidText::default(),
            has_usage: body.stream_options.is_some_and(|options| options.include_usage),
        };
        let first = form
            .completion
            .chunk(&json!({"role": "assistant", "content": ""}), None);
        return Ok(sse::stream((&caller, permit), events, form, [first]));
    }
    let outcome = answered(asked.outcome().await?)?;
    let mut message = json!({"role": "assistant", "content": outcome.text, "refusal": null});
    mark(&mut message, &outcome);
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(&outcome)});
    let answer = completion.object("chat.completion", &json!([choice]), Some(of_chat(outcome.usage)));
    Ok(Json(answer).into_response())
}

/// The members that all objects of one answer have.
struct Completion {
    id: String,
    created: u64,
    model: String,
}

impl Completion {
    fn new(caller: &Caller, asked: &AskedTurn, model: String) -> Self {
        Self {
            id: format!("chatcmpl-{}", asked.turn),
            created: caller.door.clock.now().as_millis() / 1000,
            model,
        }
    }

    fn object(&self, kind: &str, choices: &Value, usage: Option<Value>) -> Value {
        let mut object = json!({
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            object["usage"] = usage;
        }
        object
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Event {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        json_event(&self.object("chat.completion.chunk", &json!([choice]), None))
    }
}

/// The reports of a turn as chunks.
struct Chunks {
    completion: Completion,
    asked: AskedTurn,
    text: SaidText,
    has_usage: bool,
}

impl EventForm for Chunks {
    fn report(&mut self, progress: TurnProgress, _: u64, out: &mut VecDeque<Event>) {
        let completion = &self.completion;
        let said = |text: String| completion.chunk(&json!({"content": text}), None);
        let thought = |text: &str| completion.chunk(&json!({"reasoning_content": text}), None);
        match progress {
            TurnProgress::Delta(text) => out.push_back(said(self.text.say(text))),
            TurnProgress::Reasoning(text) => out.push_back(thought(&text)),
            TurnProgress::Retract | TurnProgress::ToolStarted { .. } => self.text.part(),
            // The protocol cannot ask for an approval: the answer waits, and this is all that a client
            // can show of it.
            TurnProgress::ApprovalNeeded(approval) => {
                out.push_back(thought(&format!(
                    "\nWaiting for the approval of `{}`.\n",
                    approval.tool
                )));
            }
            TurnProgress::Final(outcome) => {
                self.asked.leave_alone();
                let outcome = match answered(outcome) {
                    Ok(outcome) => outcome,
                    Err(error) => return out.push_back(json_event(&error.body())),
                };
                out.extend(self.text.rest(&outcome.text).map(said));
                let mut delta = json!({});
                mark(&mut delta, &outcome);
                out.push_back(completion.chunk(&delta, Some(finish_reason(&outcome))));
                if self.has_usage {
                    let usage = Some(of_chat(outcome.usage));
                    let last = completion.object("chat.completion.chunk", &json!([]), usage);
                    out.push_back(json_event(&last));
                }
                out.push_back(Event::default().data("[DONE]"));
            }
            _ => {}
        }
    }

    fn halted(&mut self, out: &mut VecDeque<Event>) {
        self.asked.leave_alone();
        let error = WebError::unavailable("stopping", "the host is stopping: send the request again when it runs");
        out.push_back(json_event(&error.body()));
    }
}
