//! Running tools for others who ask over the bus.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::messaging::{
    BusError, HandlerError, Message, MessageContext, MessageEnvelope, MessageHandler, SubscribeOptions, headers,
};
use rockbot_core::tool::{ToolError, ToolErrorMessage, ToolInvokeRequest, ToolInvokeResponse};
use serde::Serialize;

use super::publish_with_retries;
use crate::tool::ToolDispatcher;

/// Answers calls of this host's tools. A call that did not work is answered with a [`ToolErrorMessage`] that says
/// why; a tool that reports a failure of its own, with its response.
pub(crate) struct ToolInvokeHandler(pub(crate) Arc<ToolDispatcher>);

/// How many calls a host takes at once. The limits of its tools hold besides.
const CONCURRENCY: usize = 64;

/// Where calls come in whose callers name no host.
pub(crate) const TOOL_TOPIC: &str = "tool.invoke";

/// Where calls come in, and how they are served.
pub(crate) fn tool_subscription(topic: &str) -> (String, SubscribeOptions) {
    (topic.to_owned(), SubscribeOptions::new().with_concurrency(CONCURRENCY))
}

#[async_trait]
impl MessageHandler<ToolInvokeRequest> for ToolInvokeHandler {
    async fn handle(&self, request: ToolInvokeRequest, cx: &MessageContext) -> Result<(), HandlerError> {
        let call = cx.call_context(request.session_id.as_str());
        let response = self.0.call(request.clone(), &call).await;
        let answered = match response.code {
            Some(code) => fail(&request, &ToolError::new(code, response.content), cx).await,
            None => answer(&response, cx).await,
        };
        let answered = match answered {
            Err(error @ BusError::TooLarge { .. }) => {
                let error = ToolError::execution_failed(format!("the call has run, and its result is lost: {error}"));
                fail(&request, &error, cx).await
            }
            answered => answered,
        };
        // Never again: the call has run.
        let lost = |error| HandlerError::dead_letter(format_args!("the answer to a call could not be sent: {error}"));
        answered.map_err(lost)
    }
}

async fn fail(request: &ToolInvokeRequest, error: &ToolError, cx: &MessageContext) -> Result<(), BusError> {
    answer(&ToolErrorMessage::new(request, error), cx).await
}

/// Puts the answer under the caller's topic, or under the one for all.
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
