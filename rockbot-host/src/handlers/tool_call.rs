//! The handler of tool calls from other agents and programs.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::messaging::{
    BusError, HandlerError, Message, MessageContext, MessageEnvelope, MessageHandler, SubscribeOptions, headers,
};
use rockbot_core::tool::{ToolError, ToolErrorMessage, ToolInvokeRequest, ToolInvokeResponse};
use serde::Serialize;

use super::publish_with_retries;
use crate::tool::ToolDispatcher;

/// Runs calls of this host's tools and publishes their results. A call that failed is answered with a
/// [`ToolErrorMessage`] that states the cause; a failure that the tool itself reports is its response.
pub(crate) struct ToolInvokeHandler(pub(crate) Arc<ToolDispatcher>);

/// Maximum number of calls that a host handles at once. The limits of its tools apply besides.
const MAX_CONCURRENCY: usize = 64;

/// Topic of calls that name no host.
pub(crate) const TOOL_TOPIC: &str = "tool.invoke";

/// Returns a topic of tool calls with the options of its subscription.
pub(crate) fn tool_subscription(topic: &str) -> (String, SubscribeOptions) {
    (
        topic.to_owned(),
        SubscribeOptions::new().with_concurrency(MAX_CONCURRENCY),
    )
}

#[async_trait]
impl MessageHandler<ToolInvokeRequest> for ToolInvokeHandler {
    async fn handle(&self, request: ToolInvokeRequest, cx: &MessageContext) -> Result<(), BoxError> {
        let call = cx.call_context(request.session_id.as_str());
        let response = self.0.call(request.clone(), &call).await;
        let answered = match response.code {
            Some(code) => {
                let helps = response.retry_helps();
                let error = ToolError::new(code, response.content.into_words()).with_retryable(helps);
                fail(&request, &error, cx).await
            }
            None => answer(&response, cx).await,
        };
        let answered = match answered {
            Err(error @ BusError::TooLarge { .. }) => {
                let error = ToolError::execution_failed(format!("the call has run, and its result is lost: {error}"));
                fail(&request, &error, cx).await
            }
            answered => answered,
        };
        // A dead letter, not a retry: the call has run, and must not run twice.
        let lost = |error| HandlerError::dead_letter(format!("the answer to a call could not be sent: {error}"));
        Ok(answered.map_err(lost)?)
    }
}

async fn fail(request: &ToolInvokeRequest, error: &ToolError, cx: &MessageContext) -> Result<(), BusError> {
    answer(&ToolErrorMessage::new(request, error), cx).await
}

/// Publishes the answer to the caller's reply topic, or to the common topic of tool results.
async fn answer<M: Message + Serialize>(payload: &M, cx: &MessageContext) -> Result<(), BusError> {
    let topic = cx.envelope().reply_to.as_deref().or(ToolInvokeResponse::TOPIC);
    let topic = topic.ok_or(BusError::NoTopic(ToolInvokeResponse::TYPE))?;
    let answer = MessageEnvelope::of(payload)?
        .with_source(Arc::clone(cx.identity().name()))
        .with_header(headers::CONTENT_TRUST, "tool-output")
        .in_reply_to(cx.envelope());
    publish_with_retries(&**cx.publisher(), topic, &Arc::new(answer))
        .await
        .map(drop)
}
