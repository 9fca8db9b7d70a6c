//! Calls that other programs make by names that the host's tools do not have.

use std::fmt;

use async_trait::async_trait;

use super::{ToolError, ToolInvokeRequest};
use crate::messaging::MessageContext;

/// A translator of calls that arrive over the bus for tools that a host reaches under other
/// names, such as a bridge to MCP servers.
///
/// A subsystem provides it as a part. The host asks it about each call before it looks up the
/// tool, and records mutating calls in its ledger as it does for [served
/// tools](ToolInvokeRequest). A host that only translates serves no other tool.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::messaging::MessageContext;
/// use rockbot_core::tool::{CallTranslator, ToolError, ToolInvokeRequest};
///
/// /// Serves the tool `forecast` under its older name, too.
/// #[derive(Debug)]
/// struct Renamed;
///
/// #[async_trait]
/// impl CallTranslator for Renamed {
///     async fn translate(
///         &self,
///         call: &ToolInvokeRequest,
///         _: &MessageContext,
///     ) -> Option<Result<ToolInvokeRequest, ToolError>> {
///         (call.tool_name == *"weather").then(|| {
///             Ok(ToolInvokeRequest::new(call.tool_call_id.clone(), "forecast", call.arguments.clone()))
///         })
///     }
/// }
/// ```
#[async_trait]
pub trait CallTranslator: fmt::Debug + Send + Sync + 'static {
    /// Returns the call of the host's own tool that `call` asks for, or `None` if `call` is not for
    /// this translator.
    ///
    /// It may wait until the tool is known, within the time that the caller has left.
    ///
    /// # Errors
    ///
    /// The inner error is the answer to a call that no tool of the host fits. A call that was
    /// delivered before gets its result in the host's ledger instead: an earlier process may have
    /// run it.
    async fn translate(
        &self,
        call: &ToolInvokeRequest,
        cx: &MessageContext,
    ) -> Option<Result<ToolInvokeRequest, ToolError>>;
}
