//! The executor of a tool: the code that runs its calls.

use std::fmt;

use async_trait::async_trait;

use super::{Effect, ToolError, ToolInvokeRequest, ToolInvokeResponse};
use crate::CallContext;
use crate::shared::share;

/// The executor of one tool's calls: in this process, over a bus, or through a protocol such as
/// MCP.
///
/// Implement it when a closure ([`tool`](super::tool)) is not enough: because the effect or the
/// need of an approval depends on the arguments, or because interrupted calls can be recovered.
/// The host guards every call: it finds the tool, validates the arguments, enforces the time
/// limit and the concurrency limit, catches panics, and records metrics. An executor only does
/// the work.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::CallContext;
/// use rockbot_core::tool::{Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration};
/// use serde_json::json;
///
/// /// Answers each call with its own arguments.
/// #[derive(Debug)]
/// struct Echo;
///
/// #[async_trait]
/// impl ToolExecutor for Echo {
///     async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
///         let arguments = request.arguments.to_string();
///         Ok(request.succeed(arguments))
///     }
/// }
///
/// let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
/// let echo = Tool::new(ToolRegistration::new("echo", "Repeats a text.", schema), Echo).pure();
/// assert_eq!(echo.registration.name, "echo");
/// ```
#[async_trait]
pub trait ToolExecutor: fmt::Debug + Send + Sync + 'static {
    /// Runs one call.
    ///
    /// The host drops the future when the time limit is over. Long work should also watch
    /// [`CallContext::cancellation`], which fires when the turn is cancelled.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool failed. The model reads its message as a failed result; an error
    /// never ends the turn.
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError>;

    /// Returns the effect of this call, if it depends on the arguments, or `None` for the registered
    /// effect. The arguments are not validated yet.
    fn effect_of(&self, request: &ToolInvokeRequest) -> Option<Effect> {
        let _ = request;
        None
    }

    /// Reports whether this call must be approved first, if that depends on the arguments, or `None`
    /// for the registered hint.
    ///
    /// The host calls it before the turn waits for a person, and again before the call runs, so the
    /// answer must depend on the request alone. The arguments are as the model wrote them, not
    /// validated. A panic counts as `Some(true)`.
    fn needs_approval(&self, request: &ToolInvokeRequest) -> Option<bool> {
        let _ = request;
        None
    }

    /// Reports whether this call of a model that has read untrusted text needs an endorsement, if
    /// that depends on the arguments or on stored data, or `None` for the registered hint.
    ///
    /// The host asks when the model makes the call, and again before the call runs, and only while
    /// the context's [content trust](CallContext::content_trust) is untrusted. The arguments are as
    /// the model wrote them, not validated. A panic counts as `Some(true)`.
    async fn needs_endorsement(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Option<bool> {
        let _ = (request, cx);
        None
    }

    /// Returns `true` if [`ToolExecutor::execute`] validates the arguments itself, with errors that
    /// the model can act on. Otherwise the host validates them against the registered schema first.
    /// Default `false`.
    fn checks_arguments(&self) -> bool {
        false
    }

    /// Determines the outcome of an interrupted call. The host calls it after a crash, before it
    /// abandons a mutating call. Default [`Recovery::Unknown`].
    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        let _ = (request, cx);
        Recovery::Unknown
    }
}

share! {
    ToolExecutor {
        async execute<'a>(request: ToolInvokeRequest, cx: &'a CallContext) -> Result<ToolInvokeResponse, ToolError>;
        async needs_endorsement<'a, 'b>(request: &'a ToolInvokeRequest, cx: &'b CallContext) -> Option<bool>;
        async recover<'a, 'b>(request: &'a ToolInvokeRequest, cx: &'b CallContext) -> Recovery;
        fn effect_of(request: &ToolInvokeRequest) -> Option<Effect>;
        fn needs_approval(request: &ToolInvokeRequest) -> Option<bool>;
        fn checks_arguments() -> bool;
    }
}

/// The outcome of an interrupted call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// The call ended with this response.
    Finished(ToolInvokeResponse),
    /// The call still runs; the host asks again later.
    Running,
    /// The outcome cannot be determined. The host tells the model so and does not repeat the call.
    Unknown,
}
