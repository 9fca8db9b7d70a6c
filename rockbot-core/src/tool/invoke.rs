//! A tool call and its response.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::{ResultChunks, ToolError, ToolErrorCode};
use crate::content::Content;
use crate::{CallContext, CallId, SessionId, ToolName};

/// One call of a tool, as the model asked for it. Its members are camelCase on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "LooseRequest")]
#[non_exhaustive]
pub struct ToolInvokeRequest {
    /// The id that the model gave to the call; the response carries it back.
    pub tool_call_id: CallId,
    /// The name of the called tool.
    pub tool_name: ToolName,
    /// The arguments: the text of a JSON object, not validated. On the wire they may be missing or
    /// `null`, which means `{}`.
    pub arguments: Arc<str>,
    /// The conversation that the call belongs to. On the wire it may be missing or `null`; it is then
    /// empty.
    pub session_id: SessionId,
}

/// The response to a tool call. A failure that the model can act on is a response too, with
/// `is_error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolInvokeResponse {
    /// The id of the call that this answers.
    pub tool_call_id: CallId,
    /// The name of the called tool.
    pub tool_name: ToolName,
    /// The output for the model: plain text, JSON, images, files. On the wire it may be missing or
    /// `null`; it is then empty.
    #[serde(default, deserialize_with = "or_default")]
    pub content: Content,
    /// `true` if the call failed; `content` is then the error message.
    pub is_error: bool,
    /// The kind of failure, if the call failed and the kind is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ToolErrorCode>,
    /// The tool's word on a retry, where it differs from the meaning of its code. It is not part of
    /// the response on the wire: there a [`ToolErrorMessage`](super::ToolErrorMessage) says it.
    #[serde(skip)]
    retry_helps: Option<bool>,
    /// `true` if the call took too long and it is not known whether it took effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_time_out: bool,
    /// The groups and tools that the model is shown from now on, besides the groups and tools that
    /// the tool activates with each call. It never crosses a bus.
    #[serde(skip)]
    pub activates: Vec<ToolName>,
    /// The form of a long result in the host. It never crosses a bus.
    #[serde(skip)]
    chunks: Option<Arc<ResultChunks>>,
}

impl ToolInvokeRequest {
    /// Creates a call in no conversation. `arguments` is the text of a JSON object.
    pub fn new(
        tool_call_id: impl Into<CallId>,
        tool_name: impl Into<ToolName>,
        arguments: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            tool_name: tool_name.into(),
            arguments: arguments.into(),
            session_id: "".into(),
        }
    }

    /// Sets the conversation that the call belongs to. Default empty.
    #[must_use]
    pub fn with_session_id(mut self, session_id: impl Into<SessionId>) -> Self {
        self.session_id = session_id.into();
        self
    }

    /// Converts the call into its successful response.
    #[inline]
    pub fn succeed(self, content: impl Into<Content>) -> ToolInvokeResponse {
        ToolInvokeResponse {
            tool_call_id: self.tool_call_id,
            tool_name: self.tool_name,
            content: content.into(),
            is_error: false,
            code: None,
            retry_helps: None,
            is_time_out: false,
            activates: Vec::new(),
            chunks: None,
        }
    }

    /// Converts the call into a failed response, with the message of `error` as its content.
    pub fn fail(self, error: &ToolError) -> ToolInvokeResponse {
        ToolInvokeResponse::failed(self.tool_call_id, self.tool_name, error)
    }
}

impl ToolInvokeResponse {
    /// Creates a successful response.
    pub fn new(tool_call_id: impl Into<CallId>, tool_name: impl Into<ToolName>, content: impl Into<Content>) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            tool_name: tool_name.into(),
            content: content.into(),
            is_error: false,
            code: None,
            retry_helps: None,
            is_time_out: false,
            activates: Vec::new(),
            chunks: None,
        }
    }

    /// Creates a failed response, with the message of `error` as its content.
    pub fn failed(tool_call_id: CallId, tool_name: ToolName, error: &ToolError) -> Self {
        let code = error.code();
        Self {
            tool_call_id,
            tool_name,
            content: error.to_string().into(),
            is_error: true,
            code: Some(code),
            retry_helps: (error.retry_helps() != code.retry_helps()).then_some(error.retry_helps()),
            is_time_out: error.is_time_out && code == ToolErrorCode::OutcomeUnknown,
            activates: Vec::new(),
            chunks: None,
        }
    }

    /// Returns `true` if the call failed and the same call may succeed a little later.
    pub fn retry_helps(&self) -> bool {
        let of_code = self.code.is_some_and(ToolErrorCode::retry_helps);
        self.is_error && self.retry_helps.unwrap_or(of_code)
    }

    /// Returns `true` if the call took too long. A call whose answer was lost, as with a server that
    /// crashed, did not.
    pub fn timed_out(&self) -> bool {
        self.is_time_out || self.code == Some(ToolErrorCode::Timeout)
    }

    /// Returns the form that the host keeps a long result in, or `None` for the host's own form.
    pub fn chunks(&self) -> Option<&ResultChunks> {
        self.chunks.as_deref()
    }

    /// Sets the form that the host keeps a long result in. Default: the host's own form.
    #[must_use]
    pub fn with_chunks(mut self, chunks: ResultChunks) -> Self {
        self.chunks = Some(Arc::new(chunks));
        self
    }

    /// Sets whether the call failed. Default `false`.
    #[must_use]
    pub fn with_error(mut self, is_error: bool) -> Self {
        self.is_error = is_error;
        self
    }

    /// Sets the groups and tools that the model is shown from now on, if they are shown on demand:
    /// the result names them. Default: none.
    #[must_use]
    pub fn with_activates(mut self, names: Vec<ToolName>) -> Self {
        self.activates = names;
        self
    }

    /// Sets the kind of failure. Default `None`: unknown.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Option<ToolErrorCode>>) -> Self {
        self.code = code.into();
        self
    }
}

/// A tool call with its context: the request type of tower layers around tools.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolInvocation {
    /// The call.
    pub request: ToolInvokeRequest,
    /// The context: session and principal, deadline, grants, cancellation.
    pub cx: CallContext,
}

impl ToolInvocation {
    /// Creates a call with its context.
    pub fn new(request: ToolInvokeRequest, cx: CallContext) -> Self {
        Self { request, cx }
    }
}

/// A call as other programs write it: they leave out members that they do not have, or write
/// `null`.
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

/// Deserializes a member that may be `null`.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
