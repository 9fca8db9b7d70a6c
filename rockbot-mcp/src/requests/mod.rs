//! The requests that servers make while their tools run: input of the user, and answers of a
//! model. The host answers or refuses them; without a handler it refuses all.
//!
//! A server of the older protocol sends them as requests of its own. A server of the present
//! protocol sends them as the result of the call, which is then sent again with the answers
//! ([`Answers::to_all`]). Both come here.
#![expect(
    deprecated,
    reason = "today's protocol deprecates sampling; servers of both eras use it"
)]

mod elicitation;
mod form;
mod running;
mod sampling;

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, FormElicitationCapability, InputRequest, InputRequests, InputResponses,
    SamplingCapability, UrlElicitationCapability,
};
use serde::Serialize;
use serde_json::Value;

pub use elicitation::{Elicitation, ElicitationAnswer, ElicitationHandler, ElicitationInput};
pub use form::{ElicitationField, ElicitationForm, ElicitationKind};
pub(crate) use running::{PATIENCE, RunningCall, RunningCalls};
pub(crate) use sampling::Sampler;
pub use sampling::{SamplingLimits, SamplingOrigin};

use crate::server::{McpServer, parse_url};
use sampling::refused;

/// Maximum number of requests in one result.
const MAX_INPUTS: usize = 16;

/// The parts of a host that answer requests of servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    pub(crate) elicitation: Option<Arc<dyn ElicitationHandler>>,
    pub(crate) sampling: Option<Arc<Sampler>>,
    #[cfg(feature = "oauth")]
    pub(crate) authorizer: Option<crate::oauth::Authorizer>,
}

impl Answers {
    /// Returns `true` if some requests are answered.
    pub(crate) fn are_any(&self) -> bool {
        self.elicitation.is_some() || self.sampling.is_some()
    }

    /// Notes a server's demand for a call, and returns `true` if the next connection to it will be
    /// authorized so.
    #[cfg(feature = "oauth")]
    pub(crate) fn will_authorize(&self, server: &McpServer, challenge: &str) -> bool {
        let authorizer = self.authorizer.as_ref();
        authorizer.is_some_and(|authorizer| authorizer.demand(server, challenge))
    }

    /// Returns `false`: no server is authorized.
    #[cfg(not(feature = "oauth"))]
    pub(crate) fn will_authorize(&self, _: &McpServer, _: &str) -> bool {
        false
    }

    /// Returns the capabilities of the client: the requests that servers may make.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        capabilities.sampling = self.sampling.as_ref().map(|_| SamplingCapability::default());
        capabilities.elicitation = self.elicitation.as_ref().map(|handler| {
            let form = FormElicitationCapability::new().with_schema_validation(true);
            let offered = ElicitationCapability::default().with_form(form);
            if handler.takes_urls() {
                offered.with_url(UrlElicitationCapability::default())
            } else {
                offered
            }
        });
        capabilities
    }

    /// Returns the answers to the requests of a result, by their names.
    pub(crate) async fn to_all(
        &self,
        server: &str,
        requests: InputRequests,
        call: &RunningCall,
    ) -> Result<InputResponses, ErrorData> {
        if requests.len() > MAX_INPUTS {
            return Err(refused("it asks for too much at once"));
        }
        let mut responses = InputResponses::new();
        for (name, request) in requests {
            let response = match request {
                InputRequest::Elicitation(request) => json(&self.elicit(server, request.params, call).await),
                InputRequest::CreateMessage(request) => json(&self.sample(server, request.params, call).await?),
                // The host offers no folders.
                InputRequest::ListRoots(_) => Ok(serde_json::json!({"roots": []})),
                _ => Err(refused("it asks for something that is not known here")),
            };
            responses.insert(name, response?);
        }
        Ok(responses)
    }

    /// Answers a request for input of the user.
    pub(crate) async fn elicit(&self, server: &str, params: ElicitRequestParams, call: &RunningCall) -> ElicitResult {
        match self.ask(server, params, call).await {
            Ok(result) => result,
            Err(reason) => {
                tracing::info!(server, reason, "a request of an MCP server for input is declined");
                declined()
            }
        }
    }

    /// Returns the user's answer, or the reason why the server gets none.
    async fn ask(
        &self,
        server: &str,
        params: ElicitRequestParams,
        call: &RunningCall,
    ) -> Result<ElicitResult, &'static str> {
        let handler = self.elicitation.as_ref().ok_or("the host asks no user")?;
        let elicitation = elicitation(server, params)?;
        let form = match &elicitation.input {
            ElicitationInput::Url(_) if !handler.takes_urls() => return Err("the host shows no URLs"),
            ElicitationInput::Url(_) => None,
            ElicitationInput::Form(form) => Some(form.clone()),
        };
        if !call.counts_elicitation() {
            return Err("it asks too often");
        }
        let answered = call.answering(handler.elicit(elicitation, &call.cx)).await;
        match (answered, form) {
            (Some(ElicitationAnswer::Accept(values)), Some(form)) => {
                let values = form
                    .complete(values)
                    .map_err(|_| "the answer is not as its form asks")?;
                Ok(ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values)))
            }
            (Some(ElicitationAnswer::Accept(_)), None) => Ok(ElicitResult::new(ElicitationAction::Accept)),
            (Some(ElicitationAnswer::Decline), _) => Ok(declined()),
            (Some(ElicitationAnswer::Cancel) | None, _) => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    /// Answers a request for a model.
    pub(crate) async fn sample(
        &self,
        server: &str,
        params: CreateMessageRequestParams,
        call: &RunningCall,
    ) -> Result<CreateMessageResult, ErrorData> {
        let sampler = self
            .sampling
            .as_ref()
            .ok_or_else(|| refused("the host lends no model"))?;
        let answered = call.answering(sampler.sample(server, params, call)).await;
        answered.unwrap_or_else(|| Err(refused("the model did not answer in time")))
    }
}

/// Returns the answer that refuses a request for input.
pub(crate) fn declined() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Decline)
}

/// Returns the request in a form that can be shown, or the reason why it is not.
fn elicitation(server: &str, params: ElicitRequestParams) -> Result<Elicitation, &'static str> {
    let (message, input) = match params {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => (message, ElicitationInput::Form(ElicitationForm::of(&requested_schema)?)),
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let url = parse_url(&url).map_err(|_| "its URL is none that can be opened")?;
            (message, ElicitationInput::Url(url.into()))
        }
        _ => return Err("its request is of a kind that is not known here"),
    };
    Ok(Elicitation {
        server: server.to_owned(),
        message: form::message(&message),
        input,
    })
}

fn json(result: &impl Serialize) -> Result<Value, ErrorData> {
    serde_json::to_value(result).map_err(|_| refused("the answer cannot be written as JSON"))
}
