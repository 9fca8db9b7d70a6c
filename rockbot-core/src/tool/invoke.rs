//! A tool call, its result and its errors.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::{ToolError, ToolErrorCode};
use crate::{CallContext, CallId, SessionId, ToolName};

/// One call of a tool. On the wire its members are camelCase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "LooseRequest")]
pub struct ToolInvokeRequest {
    /// The model's name for the call; the response carries it back.
    pub tool_call_id: CallId,
    /// The tool.
    pub tool_name: ToolName,
    /// The arguments: the text of a JSON object. On the wire they may be missing or `null`, which means none.
    pub arguments: Arc<str>,
    /// The conversation that the call belongs to. On the wire it may be missing or `null`: it is then empty.
    pub session_id: SessionId,
}

/// What a tool returned. A failure that the model can act on is a response too, with `is_error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInvokeResponse {
    /// The call that this answers.
    pub tool_call_id: CallId,
    /// The tool.
    pub tool_name: ToolName,
    /// The output, plain text or JSON. On the wire it may be missing or `null`: it is then empty.
    #[serde(default, deserialize_with = "or_default")]
    pub content: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// Why it failed, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ToolErrorCode>,
}

impl ToolInvokeRequest {
    /// A response to this call that succeeded.
    pub fn succeed(self, content: impl Into<String>) -> ToolInvokeResponse {
        ToolInvokeResponse {
            tool_call_id: self.tool_call_id,
            tool_name: self.tool_name,
            content: content.into(),
            is_error: false,
            code: None,
        }
    }

    /// A response to this call that failed with `error`: what the model reads.
    pub fn fail(self, error: &ToolError) -> ToolInvokeResponse {
        ToolInvokeResponse {
            tool_call_id: self.tool_call_id,
            tool_name: self.tool_name,
            content: error.to_string(),
            is_error: true,
            code: Some(error.code()),
        }
    }
}

/// A tool call and its context: what tower layers on tool calls see.
#[derive(Debug, Clone)]
pub struct ToolInvocation {
    /// The call.
    pub request: ToolInvokeRequest,
    /// For whom, until when, with which grants.
    pub cx: CallContext,
}

/// A call as other programs write it, who leave out what they do not have, or write `null`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LooseRequest {
    tool_call_id: CallId,
    tool_name: ToolName,
    arguments: Option<Arc<str>>,
    session_id: Option<SessionId>,
}

impl From<LooseRequest> for ToolInvokeRequest {
    fn from(loose: LooseRequest) -> Self {
        Self {
            tool_call_id: loose.tool_call_id,
            tool_name: loose.tool_name,
            arguments: loose.arguments.unwrap_or_else(|| "{}".into()),
            session_id: loose.session_id.unwrap_or_else(|| "".into()),
        }
    }
}

/// A member that may be left out or `null`, too.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
