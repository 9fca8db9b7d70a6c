//! The tool of a pipeline that asks models and agents for its steps: each question is a turn of
//! its own.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::OutputSchema;
use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::tool::{
    Recovery, Tool, ToolError, ToolErrorCode, ToolExecutor, ToolFilter, ToolInvokeRequest, ToolInvokeResponse,
    ToolRegistration,
};
use rockbot_core::turn::{ApprovalRequest, Delegation, TurnOutcome, TurnRequest, TurnRunner, TurnStatus};
use rockbot_core::{CallContext, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::workers::batch::check_depth;

/// Maximum duration of a question. The budget of its turn usually ends it earlier.
const TIME_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);

/// A question to a model or an agent, as the arguments of a call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// Agent that is asked; `None` is the host's own agent, without tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    pub(super) task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<OutputSchema>,
}

/// Returns the name of the tool of a pipeline.
pub(super) fn tool_name(pipeline: &str) -> ToolName {
    ToolName::from(format!("question_of_{pipeline}"))
}

/// Creates the tool.
pub(super) fn tool(pipeline: &str, turns: &Arc<OnceLock<Arc<dyn TurnRunner>>>) -> Tool {
    let description = "Asks a model or an agent. Steps of the pipeline alone call it.";
    let schema = json!({"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]});
    let mut registration = ToolRegistration::new(tool_name(pipeline), description, schema);
    registration.hints.time_limit = Some(TIME_LIMIT);
    registration.hints.runs_turn = true;
    // The label of the answer follows from the texts that the agent had read.
    registration.hints.own_output = true;
    let executor = QuestionExecutor {
        pipeline: pipeline.into(),
        turns: turns.clone(),
    };
    // Idempotent: the same call is the same turn.
    Tool::new(registration, executor).idempotent().source("pipelines")
}

#[derive(Debug)]
struct QuestionExecutor {
    pipeline: Arc<str>,
    turns: Arc<OnceLock<Arc<dyn TurnRunner>>>,
}

#[async_trait]
impl ToolExecutor for QuestionExecutor {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let starting = || ToolError::execution_failed("the host is not started yet: call `AgentHost::start`");
        let turns = self.turns.get().ok_or_else(starting)?;
        check_depth(cx)?;
        let question: Question = serde_json::from_str(&request.arguments)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let asked = self.request(question, &request, cx);
        let asking = Delegation::run(asked, cx, |asked| turns.run(asked));
        // Cancel point: dropped here, the turn is cancelled.
        let ended = cx.cancellation().run_until_cancelled(asking).await;
        let stopped = || ToolError::new(ToolErrorCode::Cancelled, "stopped: the turn ended first");
        let outcome = ended.ok_or_else(stopped)?;
        let outcome = outcome.map_err(|error| ToolError::execution_failed(error.to_string()))?;
        if let TurnStatus::Parked(asks) = &outcome.status {
            // Nothing waits for the turn any more, so the turn must not wait for a person.
            let _ = turns.cancel(&outcome.turn).await;
            return Err(ApprovalRequest::unasked(asks));
        }
        Ok(answer(request, outcome))
    }

    /// The pipeline writes the arguments.
    fn checks_arguments(&self) -> bool {
        true
    }

    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        // The same call has the same turn, which the host has resumed.
        match self.execute(request.clone(), cx).await {
            Ok(response) => Recovery::Finished(response),
            Err(error) => Recovery::Finished(request.clone().fail(&error)),
        }
    }
}

impl QuestionExecutor {
    /// Returns the turn of a question. The same call has the same turn.
    fn request(&self, question: Question, call: &ToolInvokeRequest, cx: &CallContext) -> TurnRequest {
        let scope = cx.turn().map_or(cx.session().as_str(), |turn| turn.as_str());
        let id = call.tool_call_id.as_str();
        let mut request = TurnRequest::new(format!("{}/{scope}/{id}", self.pipeline), id, question.task)
            .with_output(question.output)
            .with_forgotten(true);
        match question.agent {
            Some(agent) => request.agent = Some(agent),
            None => request = request.with_tools(ToolFilter::only([""; 0])),
        }
        request
    }
}

/// Returns the answer of a turn. An answer that a limit cut short is an error: a pipeline goes on
/// with whole results only.
fn answer(request: ToolInvokeRequest, outcome: TurnOutcome) -> ToolInvokeResponse {
    let is_whole = outcome.is_answer() && !matches!(outcome.status, TurnStatus::Partial(_) | TurnStatus::Refused);
    let from = Provenance::labelled("agent", &outcome.label);
    let content = Content::from_iter([ContentPart::text(outcome.text).with_provenance(from)]);
    let code = (!is_whole).then_some(ToolErrorCode::ExecutionFailed);
    request.succeed(content).with_error(!is_whole).with_code(code)
}
