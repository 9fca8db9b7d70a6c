//! The entry point to the host's tools for callers outside of it.
//!
//! A call from outside goes through the dispatcher, not through a turn (`OutsideTools`): layers,
//! checks, limits and metrics are the same as for every call. Its context is untrusted and has no
//! grant, so an approval or an endorsement fails it; the host's tools about its own turns and
//! guides are not there.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::tool::{
    Effect, OutsideTools, ToolEntry, ToolError, ToolErrorCode, ToolInvokeRequest, ToolInvokeResponse,
};
use rockbot_core::{CallContext, ToolName};
use tokio::sync::watch;

use super::ToolDispatcher;

/// The tools of a host as other programs call them: through the dispatcher, without a turn.
#[derive(Debug)]
pub(crate) struct GuardedOutsideTools {
    tools: Arc<ToolDispatcher>,
    /// The tools that the host added for its own models.
    hidden: HashSet<ToolName>,
}

impl GuardedOutsideTools {
    pub(crate) fn new(tools: Arc<ToolDispatcher>, hidden: HashSet<ToolName>) -> Self {
        Self { tools, hidden }
    }

    fn is_shown(&self, entry: &ToolEntry) -> bool {
        let registration = entry.registration();
        let hints = &registration.hints;
        !hints.needs_approval && !hints.reads_guides && !self.hidden.contains(&registration.name)
    }
}

#[async_trait]
impl OutsideTools for GuardedOutsideTools {
    fn tools(&self) -> Vec<Arc<ToolEntry>> {
        let snapshot = self.tools.registry().snapshot();
        let shown = snapshot.entries().iter().filter(|entry| self.is_shown(entry));
        let mut tools: Vec<_> = shown.cloned().collect();
        tools.sort_by(|a, b| a.registration().name.cmp(&b.registration().name));
        tools
    }

    fn find(&self, name: &str) -> Option<Arc<ToolEntry>> {
        let found = self.tools.registry().snapshot().find(name).cloned();
        found.filter(|entry| self.is_shown(entry))
    }

    fn watch(&self) -> watch::Receiver<u64> {
        self.tools.registry().watch()
    }

    async fn call(&self, request: ToolInvokeRequest, cx: &CallContext) -> ToolInvokeResponse {
        if self.find(request.tool_name.as_str()).is_none() {
            let message = format!("there is no tool `{}`", request.tool_name);
            return request.fail(&ToolError::new(ToolErrorCode::ToolNotFound, message));
        }
        if self.tools.facts(&request, cx).effect == Effect::Mutating {
            return self.tools.call(request, cx).await;
        }
        // Cancel point: dropping the call ends it.
        let calling = self.tools.call(request.clone(), cx);
        match cx.cancellation().run_until_cancelled(calling).await {
            Some(response) => response,
            None => {
                let error = ToolError::new(ToolErrorCode::Cancelled, "abandoned: the caller cancelled the call");
                request.fail(&error)
            }
        }
    }
}
