//! Calls and results as messages: what goes over a bus between who calls a tool and who runs it.

use serde::{Deserialize, Serialize};

use super::{ToolError, ToolErrorCode, ToolInvokeRequest, ToolInvokeResponse};
use crate::messaging::Message;
use crate::{CallId, ToolName};

// The types' names are those that the first RockBot gives them, so that both can share a bus.

impl Message for ToolInvokeRequest {
    const TYPE: &'static str = "RockBot.Tools.ToolInvokeRequest";
    const TOPIC: Option<&'static str> = Some("tool.invoke");
}

impl Message for ToolInvokeResponse {
    const TYPE: &'static str = "RockBot.Tools.ToolInvokeResponse";
    const TOPIC: Option<&'static str> = Some("tool.result");
}

impl Message for ToolErrorMessage {
    const TYPE: &'static str = "RockBot.Tools.ToolError";
    const TOPIC: Option<&'static str> = Some("tool.result");
}

/// A [`ToolError`] on the wire: the answer to a call that has no result.
///
/// ```
/// use rockbot_core::tool::{ToolError, ToolErrorCode, ToolErrorMessage};
///
/// let json = r#"{"toolCallId":"1","toolName":"book","code":"tool_not_found","message":"none","isRetryable":false}"#;
/// let message: ToolErrorMessage = serde_json::from_str(json)?;
/// assert_eq!(ToolError::from(message).code(), ToolErrorCode::ToolNotFound);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolErrorMessage {
    /// The call that this answers.
    pub tool_call_id: CallId,
    /// The tool.
    pub tool_name: ToolName,
    /// Why it failed.
    pub code: ToolErrorCode,
    /// What the model reads.
    pub message: String,
    /// Whether the same call may succeed a little later.
    #[serde(default)]
    pub is_retryable: bool,
}

impl ToolErrorMessage {
    /// The answer to `call`, which failed with `error`.
    pub fn new(call: &ToolInvokeRequest, error: &ToolError) -> Self {
        Self {
            tool_call_id: call.tool_call_id.clone(),
            tool_name: call.tool_name.clone(),
            code: error.code(),
            message: error.message().to_owned(),
            is_retryable: error.is_retryable(),
        }
    }
}

impl From<ToolErrorMessage> for ToolError {
    fn from(error: ToolErrorMessage) -> Self {
        Self::new(error.code, error.message).with_retryable(error.is_retryable)
    }
}
