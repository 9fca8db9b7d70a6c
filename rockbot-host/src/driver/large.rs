//! Results that are too long for the conversation: what the model reads instead.

use std::sync::Arc;

use rockbot_core::store::{Namespace, WorkingMemory};
use rockbot_core::tool::ToolInvokeResponse;
use rockbot_core::{CallContext, Digest};

use super::TurnDriver;
use crate::large_result::{LargeResult, LargeResultPolicy};

/// When a result is too long, and where it is kept. Without a working memory its beginning is all that the model gets.
#[derive(Debug, Default)]
pub(crate) struct LargeResults {
    pub(crate) policy: LargeResultPolicy,
    pub(crate) memory: Option<Arc<dyn WorkingMemory>>,
}

impl TurnDriver {
    /// What the model reads of `response`, which may be longer than `threshold` characters only when its tool is there
    /// to read with.
    pub(crate) async fn fit(
        &self,
        mut response: ToolInvokeResponse,
        cx: &CallContext,
        threshold: Option<usize>,
    ) -> ToolInvokeResponse {
        let threshold = threshold.unwrap_or(self.large.policy.threshold);
        // No text has more characters than bytes.
        if response.content.len() > threshold && !self.reads_results(&response) {
            let policy = LargeResultPolicy {
                threshold,
                ..self.large.policy.clone()
            };
            if let Some(large) = LargeResult::of(&response.tool_name, &response.content, &policy) {
                response.content = self.keep(&large, &response, cx).await;
            }
        }
        response
    }

    async fn keep(&self, large: &LargeResult<'_>, response: &ToolInvokeResponse, cx: &CallContext) -> String {
        let turn = cx.turn().map(|turn| turn.as_str()).unwrap_or_default();
        let run = Digest::of([turn, response.tool_call_id.as_str()]).short();
        let keys = large.keys(Namespace::of(cx).path(), &run);
        match (&self.large.memory, keys) {
            (Some(memory), Ok(keys)) => large.keep_in(&**memory, cx.principal(), &keys).await,
            _ => large.truncated(),
        }
    }

    /// Whether the tool reads what others returned: cut again, its results would never reach the model.
    fn reads_results(&self, response: &ToolInvokeResponse) -> bool {
        let tools = self.tools.registry().snapshot();
        let tool = tools.find(response.tool_name.as_str());
        tool.is_some_and(|tool| tool.registration().hints.keeps_results_whole)
    }
}
