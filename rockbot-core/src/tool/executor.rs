//! What runs when a tool is called.

use std::fmt;

use async_trait::async_trait;

use super::{Effect, ToolError, ToolInvokeRequest, ToolInvokeResponse};
use crate::CallContext;

/// Runs the calls of one tool: here, over a bus, through MCP.
///
/// The host guards every call: it looks the tool up, checks the arguments, keeps the time limit and the number
/// of calls at once, catches panics, measures. An executor only does the work.
#[async_trait]
pub trait ToolExecutor: fmt::Debug + Send + Sync + 'static {
    /// Runs one call.
    ///
    /// # Errors
    ///
    /// An error is told to the model as a result that failed; it never ends the turn.
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError>;

    /// The effect of this very call, where it depends on the arguments, which are not checked yet; `None` means as
    /// registered.
    fn effect_of(&self, request: &ToolInvokeRequest) -> Option<Effect> {
        let _ = request;
        None
    }

    /// Whether this very call must be approved first, where it depends on the arguments; `None` means as registered.
    ///
    /// It is asked before the turn waits for a person and again before the call runs, so the answer must depend on
    /// the request alone. The arguments are as the model wrote them, not checked yet. A panic counts as yes.
    fn needs_approval(&self, request: &ToolInvokeRequest) -> Option<bool> {
        let _ = request;
        None
    }

    /// Whether [`ToolExecutor::execute`] checks the arguments itself, with a teaching error. Otherwise the host
    /// checks them against the registered schema first.
    fn checks_arguments(&self) -> bool {
        false
    }

    /// What became of a call that was interrupted: asked after a crash, before a mutating call is given up.
    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        let _ = (request, cx);
        Recovery::Unknown
    }
}

/// What became of an interrupted call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// It ended, like this.
    Finished(ToolInvokeResponse),
    /// It still runs: ask again later.
    Running,
    /// Nobody knows. The model is told so, and the call is not repeated.
    Unknown,
}
