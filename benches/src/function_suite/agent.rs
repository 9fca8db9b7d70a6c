//! The suite through an agent with its default policies.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelSettings, ModelTier};
use rockbot_core::tool::{Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration};
use rockbot_core::turn::Budget;
use rockbot_host::behavior::{ModelBehavior, ModelBehaviors};
use rockbot_host::{AgentHost, TurnPolicies};

use super::sample::{Function, Sample};
use super::{CallForm, Called, INSTRUCTIONS, MAX_MODEL_CALLS, MAX_TOKENS, RESULT};

/// Asks an agent, and returns the calls that reached its tools.
///
/// # Errors
///
/// Returns an error if the host cannot be built or the turn fails.
pub async fn calls(sample: &Sample, form: CallForm, model: Arc<dyn ChatClient>) -> Result<Vec<Called>, String> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let mut behavior = ModelBehavior::default();
    behavior.text_based_tool_calling = form == CallForm::Text;
    let policies = TurnPolicies::new().with_model_behaviors(ModelBehaviors::new().with("", behavior));
    let host = AgentHost::in_memory()
        .instructions(INSTRUCTIONS)
        .chat(Sampled(model))
        .policies(policies)
        .budget(Budget::default().with_max_model_calls(MAX_MODEL_CALLS));
    let host = sample
        .functions
        .iter()
        .fold(host, |host, function| host.tool(recorded(function, &calls)));
    let host = host.build().map_err(|error| error.to_string())?;
    let answer = host.agent().ask(sample.id.as_str(), sample.question.as_str()).await;
    let calls = calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match answer {
        Ok(_) => Ok(calls),
        Err(_) if !calls.is_empty() => Ok(calls),
        Err(error) => Err(error.to_string()),
    }
}

fn recorded(function: &Function, calls: &Arc<Mutex<Vec<Called>>>) -> Tool {
    let registration = ToolRegistration::new(function.name.as_str(), &*function.description, function.schema.clone());
    Tool::new(registration, Recorder(calls.clone()))
}

/// A tool that records its calls and always succeeds.
#[derive(Debug)]
struct Recorder(Arc<Mutex<Vec<Called>>>);

#[async_trait]
impl ToolExecutor for Recorder {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let called = Called {
            name: request.tool_name.to_string(),
            arguments: serde_json::from_str(&request.arguments).unwrap_or_default(),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(called);
        Ok(request.succeed(RESULT))
    }
}

/// A model that answers the same question in the same way.
struct Sampled(Arc<dyn ChatClient>);

#[async_trait]
impl ChatClient for Sampled {
    async fn chat(&self, mut call: ChatCall) -> Result<ChatResponse, ChatError> {
        let settings = ModelSettings::new()
            .with_max_output_tokens(MAX_TOKENS)
            .with_temperature(0.0);
        call.request = (*call.request).clone().with_settings(settings).into();
        self.0.chat(call).await
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        let mut info = self.0.describe(tier);
        // Behaviors are looked up by the model's name.
        info.model.get_or_insert_with(|| "unnamed".into());
        info
    }
}
