//! The answer in a schema as the arguments of a tool call.
//!
//! An answer by tool call becomes text in the driver: the machine and the journal know one form
//! of answers, and the tool is in no registry.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::{
    ChatRequest, ChatResponse, FinishReason, ModelSettings, OutputMode, OutputSchema, ToolChoice,
};
use rockbot_core::tool::{
    ArgumentSchema, InMemoryToolRegistry, Owner, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse,
    ToolRegistration, ToolRegistry, ToolSnapshot, ToolView,
};

use crate::turn::Turn;

/// The tool that the model of a turn calls to give an answer in a schema. It is in no registry,
/// and it never runs: the driver takes its call as the answer.
#[derive(Debug)]
pub(crate) struct AnswerTool(Arc<ToolSnapshot>);

impl AnswerTool {
    /// Name of the tool. Within the turn it replaces a namesake in the registry.
    pub(crate) const NAME: &str = "final_answer";

    const DESCRIPTION: &str = "Gives the final answer. Call it once, when nothing else is left to do, with the whole answer as its arguments.";

    /// Returns `true` if an answer in this schema can be the arguments of a tool.
    pub(crate) fn fits(output: &OutputSchema) -> bool {
        output.is_object() && ArgumentSchema::compile(&output.schema).is_ok()
    }

    /// Creates the tool of a turn whose answer is to be a tool call.
    pub(super) fn of(turn: &Turn) -> Option<Self> {
        let output = turn.request().output.as_ref()?;
        if turn.policy().output_mode != OutputMode::Tool {
            return None;
        }
        let registration = ToolRegistration::new(Self::NAME, Self::DESCRIPTION, output.schema.clone());
        let registry = InMemoryToolRegistry::new();
        // Refused only if another version of the program accepted the turn, and its checker took more
        // schemas.
        let registered = registry.register(&Owner::new("turn"), Tool::new(registration, NeverRuns));
        registered.ok().map(|()| Self(registry.snapshot()))
    }

    /// Adds the tool to a request, and makes the model call it, or another tool first if the request
    /// has some.
    pub(super) fn require(&self, request: &mut ChatRequest) {
        let mut settings = request.settings.as_deref().cloned().unwrap_or_default();
        if settings.tool_choice == Some(ToolChoice::None) {
            request.tools = ToolView::default();
        }
        let others = !request.tools.is_empty();
        settings.tool_choice = match settings.tool_choice.take() {
            Some(choice @ ToolChoice::Tool(_)) if others => Some(choice),
            _ if others => Some(ToolChoice::Required),
            _ => Some(ToolChoice::Tool(Self::NAME.into())),
        };
        request.tools = request.tools.followed_by(&self.0);
        request.settings = ModelSettings::shared(settings);
    }

    /// Takes a call of the tool as the answer, and returns `true` if it is one. Other calls in the
    /// same response run first: the model is asked again after their results.
    pub(super) fn take(&self, response: &mut ChatResponse) -> bool {
        let is_final = |name: &str| name == Self::NAME;
        let mut calls = response.tool_calls.iter();
        let Some(answer) = calls.find(|call| is_final(call.name.as_str())).cloned() else {
            return false;
        };
        response.tool_calls.retain(|call| !is_final(call.name.as_str()));
        let is_answer = response.finish.allows_calls() && response.tool_calls.is_empty();
        if is_answer {
            response.text = answer.arguments.to_string();
            response.finish = FinishReason::Stop;
        }
        is_answer
    }
}

/// The executor of a tool whose calls the driver takes.
#[derive(Debug)]
struct NeverRuns;

#[async_trait]
impl ToolExecutor for NeverRuns {
    async fn execute(&self, _: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        Err(ToolError::execution_failed(
            "this tool gives the answer of a turn, and is not called otherwise",
        ))
    }
}
