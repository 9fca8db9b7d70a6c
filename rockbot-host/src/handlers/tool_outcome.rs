//! The handler of questions about mutating calls whose callers have restarted.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::messaging::{Message as _, MessageContext, MessageHandler, SubscribeOptions};
use rockbot_core::tool::{ToolError, ToolInvokeResponse, ToolOutcomeRequest};

use super::tool_call::{answer, context_of, fail};
use crate::effects::{EffectKey, EffectLedger, Recorded};

/// Maximum number of questions that a host handles at once. Each waits for its call, at most as
/// long as its sender.
const MAX_CONCURRENCY: usize = 64;

/// Returns the topic of the questions with the options of its subscription: every instance gets
/// all, since the caller does not know which one had the call.
pub(crate) fn outcome_subscription() -> (String, SubscribeOptions) {
    let options = SubscribeOptions::new().ephemeral().with_concurrency(MAX_CONCURRENCY);
    let topic = ToolOutcomeRequest::TOPIC.expect("the type has a topic");
    (topic.to_owned(), options)
}

/// Answers with the ledger's record of a call, which is never run here. A call that the ledger
/// does not know gets no answer: another worker may know it.
pub(crate) struct Outcomes(pub(crate) Arc<EffectLedger>);

#[async_trait]
impl MessageHandler<ToolOutcomeRequest> for Outcomes {
    async fn handle(&self, asked: ToolOutcomeRequest, cx: &MessageContext) -> Result<(), BoxError> {
        let request = asked.call;
        let call = context_of(&request, cx);
        let key = EffectKey::of(cx.envelope(), &request, &call);
        let answered = match self.0.recall(key, call.deadline()).await {
            None => return Ok(()),
            Some(Recorded::Ended(mut response)) => {
                response.tool_call_id = request.tool_call_id.clone();
                answer::<ToolInvokeResponse>(&response, cx).await
            }
            Some(Recorded::Running) => {
                let running = ToolError::outcome_unknown("the call is still running").with_retryable(true);
                fail(&request, &running, cx).await
            }
            Some(Recorded::Unknown(why)) => fail(&request, &ToolError::outcome_unknown(why), cx).await,
        };
        Ok(answered?)
    }
}
