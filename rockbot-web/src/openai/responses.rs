//! Responses.
//!
//! A response that is kept (`store`, the default) has a session of its own, in which responses that
//! name it as their previous one go on. The id of a response has the session and the turn, so nothing
//! else has to be stored. A response that began from messages of the client, or is not kept, is in
//! no session: the client sends the whole conversation again.

use std::collections::VecDeque;

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use rockbot_core::SessionId;
use rockbot_core::turn::{TurnOutcome, TurnProgress, TurnQuery};
use serde::Deserialize;
use serde_json::{Value, json};

use super::conversation::{Conversation, Message};
use super::params::{IgnoredTools, Params, Place};
use super::usage::{answered, finish_reason, mark, of_response};
use crate::asked::{AskedTurn, SaidText};
use crate::door::{Caller, JsonBody, UrlPath, text_of};
use crate::error::WebError;
use crate::sse::{self, EventForm, json as json_event};

/// Beginning of the ids of responses.
const PREFIX: &str = "resp_";

/// Session in the id of a response that is in no session.
const NO_SESSION: &str = "once";

/// A request. Members that no answer depends on are not read.
#[derive(Deserialize)]
pub(super) struct ResponseBody {
    model: String,
    input: Input,
    instructions: Option<String>,
    #[serde(default)]
    stream: bool,
    store: Option<bool>,
    previous_response_id: Option<String>,
    conversation: Option<Value>,
    #[serde(default)]
    background: bool,
    temperature: Option<f32>,
    top_p: Option<f32>,
    max_output_tokens: Option<u32>,
    reasoning: Option<Reasoning>,
    text: Option<TextForm>,
    #[serde(default)]
    tools: Vec<Value>,
    tool_choice: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Items(Vec<Message>),
}

#[derive(Deserialize)]
struct Reasoning {
    effort: Option<String>,
}

#[derive(Deserialize)]
struct TextForm {
    format: Option<Value>,
}

impl ResponseBody {
    /// Refuses parameters that the agent does not serve.
    fn check(&self) -> Result<(), WebError> {
        if self.background {
            return Err(WebError::invalid(
                "`background` is not offered: POST /api/sessions/{session}/messages accepts a message for later",
            ));
        }
        if self.conversation.as_ref().is_some_and(|given| !given.is_null()) {
            return Err(WebError::invalid(
                "`conversation` is not offered: use `previous_response_id`, or the header `X-Session-Id`",
            ));
        }
        Ok(())
    }

    fn conversation(&mut self) -> Result<Conversation, WebError> {
        let instructions = self.instructions.take();
        let items = match std::mem::replace(&mut self.input, Input::Items(Vec::new())) {
            Input::Text(text) => {
                let message = serde_json::from_value(json!({"role": "user", "content": text}));
                vec![message.expect("a message with a text is one")]
            }
            Input::Items(items) => items,
        };
        let kinds = items.iter().map(|item| item.kind.as_deref().unwrap_or("message"));
        if let Some(kind) = kinds.into_iter().find(|kind| *kind != "message") {
            let message = format!("items of the type `{kind}` are not read: send messages alone");
            return Err(WebError::invalid(message));
        }
        Conversation::read(instructions, items)
    }
}

/// Answers an input.
pub(super) async fn create(
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ResponseBody>,
) -> Result<Response, WebError> {
    let ignored = IgnoredTools::of(&body.tools, body.tool_choice.as_ref())?;
    Ok(ignored.noted(answer(caller, headers, body).await?))
}

async fn answer(caller: Caller, headers: HeaderMap, mut body: ResponseBody) -> Result<Response, WebError> {
    body.check()?;
    let conversation = body.conversation()?;
    let place = place(&caller, &headers, &body, &conversation).await?;
    let request = place.request(&caller, &body.model, conversation)?;
    let session = if place.is_kept_here {
        &*place.session
    } else {
        NO_SESSION
    };
    let response = ResponseObject {
        id: format!("{PREFIX}{session}_{}", request.turn_id()),
        created: caller.door.clock.now().as_millis() / 1000,
        model: body.model,
        previous: body.previous_response_id,
    };
    let request = Params {
        temperature: body.temperature,
        top_p: body.top_p,
        max_tokens: body.max_output_tokens,
        effort: body.reasoning.and_then(|reasoning| reasoning.effort),
        format: body.text.and_then(|text| text.format),
        ..Params::default()
    }
    .apply(request)?;
    let permit = caller.take_stream()?;
    caller.count_message().await?;
    let asked = AskedTurn::start(&caller, request, place.is_repeatable).await?;
    if body.stream {
        let events = asked.events().await?;
        let mut form = ResponseEvents {
            response,
            asked,
            text: SaidText::default(),
            sequence: 0,
        };
        let first = form.begin();
        return Ok(sse::stream((&caller, permit), events, form, first));
    }
    let outcome = answered(asked.outcome().await?)?;
    Ok(Json(response.ended(&outcome)).into_response())
}

/// Finds the place of a request.
async fn place(
    caller: &Caller,
    headers: &HeaderMap,
    body: &ResponseBody,
    conversation: &Conversation,
) -> Result<Place, WebError> {
    let place = Place::of(caller, headers);
    if let Some(previous) = &body.previous_response_id {
        let session = continued(caller, previous).await?;
        if !conversation.earlier.is_empty() {
            return Err(WebError::invalid(
                "with `previous_response_id` send the new message alone: the earlier ones are kept here",
            ));
        }
        return Ok(Place {
            session,
            is_kept_here: true,
            ..place
        });
    }
    let begins_here = conversation.earlier.is_empty() && body.store != Some(false);
    if place.is_kept_here || !begins_here {
        return Ok(place);
    }
    // The id of the message, which a client's key may be, is the session's, too.
    let session = match text_of(headers, "idempotency-key") {
        Some(key) => rockbot_core::Digest::of([key]).short(),
        None => caller.door.ids.next_id(),
    };
    Ok(Place {
        session,
        is_kept_here: true,
        ..place
    })
}

/// Returns the session of a response, if its turn was the last one there.
async fn continued(caller: &Caller, previous: &str) -> Result<String, WebError> {
    let (session, turn) = parsed(previous)?;
    let turn = caller.turn(turn).await.map_err(|_| unknown(previous))?;
    if session == NO_SESSION {
        return Err(WebError::invalid(
            "the previous response is in no session, since it began from given messages or was not kept: send the whole conversation",
        ));
    }
    let known = SessionId::from(session);
    let last = caller.door.memory.recent(&caller.principal, &known, 1).await?;
    match last.last() {
        Some(entry) if entry.turn == turn => Ok(session.to_owned()),
        Some(_) => Err(WebError::new(
            StatusCode::CONFLICT,
            "response_continued",
            "the conversation went on after the previous response: name its last response, or send the whole conversation",
        )),
        None => Err(unknown(previous)),
    }
}

/// Returns the session and the turn in the id of a response.
fn parsed(id: &str) -> Result<(&str, &str), WebError> {
    let rest = id.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('_'));
    rest.ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> WebError {
    WebError::not_found(format!("there is no response `{id}`, or it ended more than a day ago"))
}

/// Shows a response.
pub(super) async fn show(caller: Caller, UrlPath(id): UrlPath<String>) -> Result<Json<Value>, WebError> {
    let (_, turn) = parsed(&id)?;
    let turn = caller.turn(turn).await.map_err(|_| unknown(&id))?;
    let turns = &caller.door.turns;
    let response = ResponseObject {
        id,
        created: 0,
        model: caller.door.name.to_string(),
        previous: None,
    };
    let is_live = turns.live(&TurnQuery::default()).iter().any(|live| live.turn == turn);
    if is_live {
        return Ok(Json(response.object("in_progress", &json!([]), None)));
    }
    Ok(Json(response.ended(&turns.outcome(&turn).await?)))
}

/// The members that all objects of one response have.
struct ResponseObject {
    id: String,
    created: u64,
    model: String,
    previous: Option<String>,
}

impl ResponseObject {
    fn object(&self, status: &str, output: &Value, usage: Option<&Value>) -> Value {
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "instructions": null,
            "metadata": {},
            "model": self.model,
            "output": output,
            "parallel_tool_calls": false,
            "previous_response_id": self.previous,
            "temperature": null,
            "tool_choice": "none",
            "tools": [],
            "top_p": null,
            "usage": usage,
        })
    }

    /// Returns the response of a turn that has ended.
    fn ended(&self, outcome: &TurnOutcome) -> Value {
        let usage = of_response(outcome.usage);
        let usage = Some(&usage);
        if !outcome.is_answer() {
            let mut object = self.object("failed", &json!([]), usage);
            object["error"] = json!({"code": "server_error", "message": outcome.text});
            return object;
        }
        let mut message = self.message("completed", Some(&outcome.text));
        mark(&mut message, outcome);
        let output = json!([message]);
        let reason = match finish_reason(outcome) {
            "length" => "max_output_tokens",
            "content_filter" => "content_filter",
            _ => return self.object("completed", &output, usage),
        };
        let mut object = self.object("incomplete", &output, usage);
        object["incomplete_details"] = json!({"reason": reason});
        object
    }

    /// Returns the one item of the response.
    fn message(&self, status: &str, text: Option<&str>) -> Value {
        let content: Vec<_> = text.into_iter().map(part).collect();
        json!({"id": self.item(), "type": "message", "status": status, "role": "assistant", "content": content})
    }

    fn item(&self) -> String {
        let turn = self.id.rsplit('_').next().unwrap_or_default();
        format!("msg_{turn}")
    }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// The reports of a turn as events of a response.
struct ResponseEvents {
    response: ResponseObject,
    asked: AskedTurn,
    text: SaidText,
    sequence: u64,
}

impl ResponseEvents {
    fn event(&mut self, kind: &str, mut data: Value) -> Event {
        data["type"] = Value::from(kind);
        data["sequence_number"] = Value::from(self.sequence);
        self.sequence += 1;
        json_event(&data).event(kind)
    }

    /// Returns the event about the part of the one item.
    fn of_part(&mut self, kind: &str, mut data: Value) -> Event {
        data["item_id"] = Value::from(self.response.item());
        data["output_index"] = Value::from(0);
        data["content_index"] = Value::from(0);
        self.event(kind, data)
    }

    fn begin(&mut self) -> Vec<Event> {
        let begun = self.response.object("in_progress", &json!([]), None);
        let item = self.response.message("in_progress", None);
        vec![
            self.event("response.created", json!({"response": begun})),
            self.event("response.in_progress", json!({"response": begun})),
            self.event("response.output_item.added", json!({"output_index": 0, "item": item})),
            self.of_part("response.content_part.added", json!({"part": part("")})),
        ]
    }

    fn say(&mut self, text: &str) -> Event {
        self.of_part("response.output_text.delta", json!({"delta": text, "logprobs": []}))
    }

    fn end(&mut self, outcome: &TurnOutcome, out: &mut VecDeque<Event>) {
        let response = self.response.ended(outcome);
        if outcome.is_answer() {
            if let Some(rest) = self.text.rest(&outcome.text) {
                let said = self.say(&rest);
                out.push_back(said);
            }
            let text = &outcome.text;
            let done = json!({"text": text, "logprobs": []});
            out.push_back(self.of_part("response.output_text.done", done));
            out.push_back(self.of_part("response.content_part.done", json!({"part": part(text)})));
            let item = json!({"output_index": 0, "item": response["output"][0]});
            out.push_back(self.event("response.output_item.done", item));
        }
        let status = response["status"].as_str().unwrap_or_default();
        let kind = format!("response.{status}");
        out.push_back(self.event(&kind, json!({"response": response})));
    }
}

impl EventForm for ResponseEvents {
    fn report(&mut self, progress: TurnProgress, _: u64, out: &mut VecDeque<Event>) {
        match progress {
            TurnProgress::Delta(text) => {
                let text = self.text.say(text);
                let said = self.say(&text);
                out.push_back(said);
            }
            TurnProgress::Retract | TurnProgress::ToolStarted { .. } => self.text.part(),
            TurnProgress::Final(outcome) => {
                self.asked.leave_alone();
                self.end(&outcome, out);
            }
            _ => {}
        }
    }

    fn halted(&mut self, out: &mut VecDeque<Event>) {
        self.asked.leave_alone();
        let stopping = "the host is stopping: send the request again when it runs";
        let error = json!({"code": "server_error", "message": stopping, "param": null});
        out.push_back(self.event("error", error));
    }
}
