//! The tool whose effect depends on the guarantees that are known at each call.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::tool::{Effect, Recovery, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse};

use super::super::runner::ScriptRunner as _;
use super::RemoteScriptRunner;

/// Returns the tool with an effect by the guarantees that are known at each call: pure if they wall
/// a script off, else mutating and in need of an endorsement.
pub(crate) fn walled(tool: Tool, runner: Arc<RemoteScriptRunner>) -> Tool {
    let mut tool = tool.needs_endorsement();
    tool.executor = Arc::new(Walled {
        executor: tool.executor,
        runner,
    });
    tool
}

#[derive(Debug)]
struct Walled {
    executor: Arc<dyn ToolExecutor>,
    runner: Arc<RemoteScriptRunner>,
}

#[async_trait]
impl ToolExecutor for Walled {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        self.executor.execute(request, cx).await
    }

    fn effect_of(&self, _: &ToolInvokeRequest) -> Option<Effect> {
        Some(if self.runner.guarantees().are_walls() {
            Effect::Pure
        } else {
            Effect::Mutating
        })
    }

    async fn needs_endorsement(&self, _: &ToolInvokeRequest, _: &CallContext) -> Option<bool> {
        Some(!self.runner.asked_guarantees().await.are_walls())
    }

    fn needs_approval(&self, request: &ToolInvokeRequest) -> Option<bool> {
        self.executor.needs_approval(request)
    }

    fn checks_arguments(&self) -> bool {
        self.executor.checks_arguments()
    }

    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        self.executor.recover(request, cx).await
    }
}
