//! Layers: async functions around messages, model calls and tool calls. Around turns is a stock
//! one, a rate limit.

use std::time::{Duration, Instant};

use rockbot::chat::{ChatCall, ChatResponse};
use rockbot::layer::{Next, ToolInvocation};
use rockbot::message::{Disposition, MessageContext};
use rockbot::prelude::BoxError;
use rockbot::tool::ToolInvokeResponse;

/// Time after which a model call is reported as slow.
const SLOW: Duration = Duration::from_secs(30);

/// Logs the messages that cannot be handled, beside the bus, which keeps them as dead letters.
pub(crate) async fn report_refusals(
    message: MessageContext,
    next: Next<MessageContext, Disposition>,
) -> Result<Disposition, BoxError> {
    let kind = message.envelope().message_type.clone();
    let verdict = next.call(message).await?;
    if let Disposition::DeadLetter { reason } = &verdict {
        tracing::warn!(%kind, reason, "message refused");
    }
    Ok(verdict)
}

/// Logs model calls that users have to wait for.
pub(crate) async fn report_slow(call: ChatCall, next: Next<ChatCall, ChatResponse>) -> Result<ChatResponse, BoxError> {
    let began = Instant::now();
    let answer = next.call(call).await;
    if began.elapsed() > SLOW {
        tracing::warn!(seconds = began.elapsed().as_secs(), "slow model call");
    }
    answer
}

/// Logs every tool call with its principal: the audit trail.
pub(crate) async fn audit(
    call: ToolInvocation,
    next: Next<ToolInvocation, ToolInvokeResponse>,
) -> Result<ToolInvokeResponse, BoxError> {
    let tool = call.request.tool_name.clone();
    let principal = call.cx.principal().clone();
    let response = next.call(call).await?;
    tracing::info!(target: "audit", %tool, %principal, failed = response.is_error, "tool called");
    Ok(response)
}
