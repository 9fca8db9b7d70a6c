//! The parameters of both interfaces that mean the same: sampling, the form of the answer, tools.

use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use rockbot_core::chat::{ModelSettings, OutputSchema, ReasoningEffort};
use rockbot_core::turn::TurnRequest;
use serde::Deserialize;
use serde_json::Value;

use super::conversation::Conversation;
use crate::door::{Caller, text_of};
use crate::error::WebError;

/// One text, or several.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Texts {
    One(String),
    Several(Vec<String>),
}

/// The parameters of a request that the agent's model is asked with.
#[derive(Default)]
pub(super) struct Params {
    pub(super) temperature: Option<f32>,
    pub(super) top_p: Option<f32>,
    pub(super) max_tokens: Option<u32>,
    pub(super) seed: Option<i64>,
    pub(super) stop: Option<Texts>,
    pub(super) effort: Option<String>,
    /// The form of the answer.
    pub(super) format: Option<Value>,
}

impl Params {
    /// Sets the parameters of a turn.
    pub(super) fn apply(self, request: TurnRequest) -> Result<TurnRequest, WebError> {
        let mut settings = ModelSettings::new();
        settings.temperature = self.temperature;
        settings.top_p = self.top_p;
        settings.max_output_tokens = self.max_tokens;
        settings.seed = self.seed;
        settings.stop_sequences = match self.stop {
            None => Vec::new(),
            Some(Texts::One(text)) => vec![text],
            Some(Texts::Several(texts)) => texts,
        };
        settings.reasoning_effort = self.effort.map(ReasoningEffort::from);
        let output = self.format.as_ref().map(output).transpose()?.flatten();
        Ok(request.with_model_settings(settings).with_output(output))
    }
}

/// Returns the schema of the answer, if one is asked for.
fn output(format: &Value) -> Result<Option<OutputSchema>, WebError> {
    // Responses have the members of the schema beside the type, chat completions below it.
    let schema = format.get("json_schema").unwrap_or(format);
    match format["type"].as_str() {
        None | Some("text") => Ok(None),
        Some("json_object") => {
            let any = serde_json::json!({"type": "object", "additionalProperties": true});
            Ok(Some(OutputSchema::new("answer", any)))
        }
        Some("json_schema") => {
            let name = schema["name"].as_str().unwrap_or("answer").to_owned();
            let schema = schema.get("schema").cloned();
            let schema = schema.ok_or_else(|| WebError::invalid("the form of the answer has no `schema`"))?;
            Ok(Some(OutputSchema::new(name, schema)))
        }
        Some(kind) => Err(WebError::invalid(format!("the form of the answer `{kind}` is unknown"))),
    }
}

/// Header of an answer with the number of the client's tools that the agent did not have.
const IGNORED_TOOLS: HeaderName = HeaderName::from_static("x-ignored-tools");

/// Tools of the client, which the agent does not have.
///
/// Clients such as Open WebUI offer tools with every request. A model may always answer without a
/// call, so they are ignored; a client that insists on a call is refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct IgnoredTools(usize);

impl IgnoredTools {
    /// Counts the tools. Refuses a choice that is neither `auto` nor `none`.
    pub(super) fn of(tools: &[Value], choice: Option<&Value>) -> Result<Self, WebError> {
        match choice {
            _ if tools.is_empty() => Ok(Self(0)),
            None | Some(Value::Null) => Ok(Self(tools.len())),
            Some(choice) if choice == "auto" || choice == "none" => Ok(Self(tools.len())),
            Some(_) => Err(WebError::invalid(
                "tools of the client are not called: the agent works with its own tools. Leave `tool_choice` out",
            )),
        }
    }

    /// Counts the tools of both.
    pub(super) fn and(self, others: Self) -> Self {
        Self(self.0 + others.0)
    }

    /// Tells the client.
    pub(super) fn noted(self, mut response: Response) -> Response {
        if self.0 > 0 {
            response.headers_mut().insert(IGNORED_TOOLS, self.0.into());
        }
        response
    }
}

/// The place of a request: the session and id of its message, and who keeps the conversation.
pub(super) struct Place {
    pub(super) session: String,
    pub(super) message: String,
    /// `true` if the host keeps the conversation, and the client's earlier messages are not read.
    pub(super) is_kept_here: bool,
    /// `true` if the client can ask for the same turn again.
    pub(super) is_repeatable: bool,
}

impl Place {
    /// Finds the place of a request by its headers.
    ///
    /// The client sends the whole conversation with each request, and may have edited it. So by
    /// default each request has a session of its own, which the host forgets: the conversation is what
    /// the client says it is. A session that followed from a digest of the messages would join two
    /// conversations that begin alike, and would tell the same answer to the same question for a day.
    /// With `X-Session-Id` the host keeps the conversation, with all that its tools returned.
    pub(super) fn of(caller: &Caller, headers: &HeaderMap) -> Self {
        let key = text_of(headers, "idempotency-key");
        let message = key.map_or_else(|| caller.door.ids.next_id(), str::to_owned);
        match text_of(headers, "x-session-id") {
            Some(session) => Self {
                session: session.to_owned(),
                message,
                is_kept_here: true,
                is_repeatable: key.is_some(),
            },
            None => Self {
                session: format!("openai/{message}"),
                message,
                is_kept_here: false,
                is_repeatable: key.is_some(),
            },
        }
    }

    /// Returns the request of a conversation at this place.
    pub(super) fn request(
        &self,
        caller: &Caller,
        model: &str,
        conversation: Conversation,
    ) -> Result<TurnRequest, WebError> {
        let Conversation {
            instructions,
            earlier,
            last,
        } = conversation;
        let request = caller.request(Some(model), &self.session, &self.message, last)?;
        let request = if self.is_kept_here {
            request
        } else {
            request.with_history(earlier).with_forgotten(true)
        };
        Ok(if instructions.is_empty() {
            request
        } else {
            request.with_instructions(instructions)
        })
    }
}
