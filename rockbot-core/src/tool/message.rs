//! Tool calls and their results as messages of a bus, between the program that calls a tool and
//! the program that runs it.

use serde::{Deserialize, Serialize};

use super::{ToolError, ToolErrorCode, ToolInvokeRequest, ToolInvokeResponse};
use crate::messaging::Message;
use crate::{CallId, ToolName};

// The type names are the names of the original RockBot, so that its programs and these can share
// a bus.

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

impl Message for ToolOutcomeRequest {
    const TYPE: &'static str = "rockbot.ToolOutcomeRequest";
    const TOPIC: Option<&'static str> = Some("tool.outcome");
}

/// A question for the outcome of a mutating call, from a program that has restarted since it
/// asked for the call.
///
/// All workers get the question. The worker that has recorded the call answers as it would have
/// answered the call: with its [`ToolInvokeResponse`], or with a [`ToolErrorMessage`] that its
/// outcome is unknown. This error is retryable as long as the call runs. The call itself is not
/// run. [`RemoteToolExecutor`](super::RemoteToolExecutor) asks when a turn resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolOutcomeRequest {
    /// Call in question.
    pub call: ToolInvokeRequest,
}

impl ToolOutcomeRequest {
    /// Creates a question about `call`.
    pub fn new(call: ToolInvokeRequest) -> Self {
        Self { call }
    }
}

/// A [`ToolError`] on the wire: the answer to a call that failed without a response.
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
#[non_exhaustive]
pub struct ToolErrorMessage {
    /// The id of the call that this answers.
    pub tool_call_id: CallId,
    /// The name of the called tool.
    pub tool_name: ToolName,
    /// The kind of failure.
    pub code: ToolErrorCode,
    /// The message that the model reads.
    pub message: String,
    /// `true` if the same call may succeed a little later. Default `false`.
    #[serde(default)]
    pub is_retryable: bool,
}

impl ToolErrorMessage {
    /// Creates the answer to `call`, which failed with `error`.
    pub fn new(call: &ToolInvokeRequest, error: &ToolError) -> Self {
        Self {
            tool_call_id: call.tool_call_id.clone(),
            tool_name: call.tool_name.clone(),
            code: error.code(),
            message: error.message().to_owned(),
            is_retryable: error.retry_helps(),
        }
    }
}

impl From<ToolErrorMessage> for ToolError {
    fn from(error: ToolErrorMessage) -> Self {
        Self::new(error.code, error.message).with_retryable(error.is_retryable)
    }
}
