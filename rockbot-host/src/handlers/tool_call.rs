//! The handler of tool calls from other agents and programs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::messaging::{
    BusError, HandlerError, Message, MessageContext, MessageEnvelope, MessageHandler, SubscribeOptions, headers,
};
use rockbot_core::tool::{
    CallTranslator, Effect, ToolError, ToolErrorCode, ToolErrorMessage, ToolInvokeRequest, ToolInvokeResponse,
};
use rockbot_core::{BoxError, CallContext};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::publish_with_retries;
use super::running_calls::RunningCalls;
use crate::effects::{Admission, EffectKey, EffectLedger, Recorded};
use crate::tool::ToolDispatcher;

/// Runs calls of this host's tools and publishes their results. A call that failed is answered
/// with a [`ToolErrorMessage`] that states the cause; a failure that the tool itself reports is
/// its response.
pub(crate) struct ToolInvokeHandler {
    /// Translates calls that name tools in another way.
    pub(crate) translator: Option<Arc<dyn CallTranslator>>,
    /// `true` if calls may name the host's own tools.
    pub(crate) serves_own: bool,
    pub(crate) tools: Arc<ToolDispatcher>,
    pub(crate) effects: Arc<EffectLedger>,
    pub(crate) running: Arc<RunningCalls>,
    /// Fires when the host stops and waits for its calls no longer.
    pub(crate) cut_off: CancellationToken,
}

/// Maximum number of calls that a host handles at once. The limits of its tools apply besides.
const MAX_CONCURRENCY: usize = 64;

/// Maximum part of the caller's time that is kept for the way of the answer; at most a tenth of it.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Maximum difference of the clocks of a caller and this host. A call that waited in a queue may
/// seem older by it.
const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// Topic of calls that name no host.
pub(crate) const TOOL_TOPIC: &str = "tool.invoke";

/// The response to a call that fits no tool of the host.
type Untranslated = Box<ToolInvokeResponse>;

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
        let mut response = match self.translate(&request, cx).await {
            Ok(call) => {
                // Cancel point: a call that the end of the host cuts off is dropped, and its caller learns so.
                let responding = self.respond(&request, &call, cx);
                let response = self.cut_off.run_until_cancelled(responding).await;
                response.unwrap_or_else(|| self.stopped(&call, cx))
            }
            Err(response) => *response,
        };
        response.tool_name.clone_from(&request.tool_name);
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

impl ToolInvokeHandler {
    /// Returns the call of the host's own tool that `asked` stands for, or else the response to it.
    async fn translate(
        &self,
        asked: &ToolInvokeRequest,
        cx: &MessageContext,
    ) -> Result<ToolInvokeRequest, Untranslated> {
        let translating = async {
            match &self.translator {
                Some(translator) => translator.translate(asked, cx).await,
                None => None,
            }
        };
        // Cancel point: nothing has begun.
        let error = match self.cut_off.run_until_cancelled(translating).await {
            Some(Some(Ok(call))) => return Ok(call),
            Some(None) if self.serves_own => return Ok(asked.clone()),
            Some(Some(Err(error))) => error,
            Some(None) => ToolError::new(ToolErrorCode::ToolNotFound, "this host serves no tool of this name"),
            None => {
                ToolError::execution_failed("not run: the worker stopped before the call began").with_retryable(true)
            }
        };
        Err(Box::new(self.untranslated(asked, &error, cx).await))
    }

    /// Returns the response to a call that fits no tool. A call that was delivered before gets its
    /// record in the ledger: an earlier process may have run it.
    async fn untranslated(
        &self,
        asked: &ToolInvokeRequest,
        error: &ToolError,
        cx: &MessageContext,
    ) -> ToolInvokeResponse {
        if cx.delivery().attempt == 1 {
            return asked.clone().fail(error);
        }
        let call = context_of(asked, cx);
        let key = EffectKey::of(cx.envelope(), asked, &call);
        let why = match self.effects.recall(key, call.deadline()).await {
            Some(Recorded::Ended(mut response)) => {
                response.tool_call_id = asked.tool_call_id.clone();
                return response;
            }
            Some(Recorded::Running) => "the call is still running",
            Some(Recorded::Unknown(why)) => why,
            None => "the call was delivered before, and its tool is not known here now",
        };
        asked.clone().fail(&ToolError::outcome_unknown(why))
    }

    /// Runs the call that `asked` stands for, unless its caller has cancelled it, or it must not run
    /// again.
    async fn respond(
        &self,
        asked: &ToolInvokeRequest,
        request: &ToolInvokeRequest,
        cx: &MessageContext,
    ) -> ToolInvokeResponse {
        let running = self.running.begin(&cx.envelope().message_id);
        let call = context_of(request, cx).with_cancellation(running.token.clone());
        if self.tools.facts(request, &call).effect == Effect::Mutating {
            // The key is the key of the call as it arrived, which questions about its outcome name,
            // too.
            let key = EffectKey::of(cx.envelope(), asked, &call);
            return self.respond_once(request, key, &call, cx).await;
        }
        // Cancel point: dropping the call ends it. A mutating one is awaited, since its outcome must be
        // known.
        let calling = self.tools.call(request.clone(), &call);
        match running.token.run_until_cancelled(calling).await {
            Some(response) => response,
            None => {
                let error = ToolError::new(ToolErrorCode::Cancelled, "abandoned: the caller cancelled the call");
                request.clone().fail(&error)
            }
        }
    }

    /// Returns the response to a call that was cut off.
    fn stopped(&self, request: &ToolInvokeRequest, cx: &MessageContext) -> ToolInvokeResponse {
        let effect = self.tools.facts(request, &context_of(request, cx)).effect;
        let stopped = "the worker stopped before the call had ended";
        let error = match effect {
            Effect::Mutating => ToolError::outcome_unknown(stopped),
            Effect::Pure | Effect::Idempotent => ToolError::execution_failed(stopped).with_retryable(true),
        };
        request.clone().fail(&error)
    }

    /// Runs a mutating call, or returns its first result. A call whose caller has given up meanwhile
    /// does not begin.
    async fn respond_once(
        &self,
        request: &ToolInvokeRequest,
        key: EffectKey,
        call: &CallContext,
        cx: &MessageContext,
    ) -> ToolInvokeResponse {
        let is_repeated = cx.delivery().attempt > 1;
        if !is_repeated && self.is_too_late(cx) && self.effects.recall(key, call.deadline()).await.is_none() {
            let error = "not run: the call waited in a queue until its caller had given up; if the caller still waits, \
                         the clocks of the two hosts differ";
            return request.clone().fail(&ToolError::execution_failed(error));
        }
        match self.effects.enter(key, is_repeated, call.deadline()).await {
            Admission::New(guard) => {
                let response = self.tools.call(request.clone(), call).await;
                guard.end(&response).await;
                response
            }
            Admission::Ended(mut response) => {
                metrics::counter!("rockbot.pipeline.duplicates").increment(1);
                response.tool_call_id = request.tool_call_id.clone();
                response
            }
            Admission::Unknown(why) => {
                metrics::counter!("rockbot.pipeline.duplicates").increment(1);
                request.clone().fail(&ToolError::outcome_unknown(why))
            }
            Admission::Unrecorded(error) => {
                let error = format!("not run: the worker cannot record the call: {error}");
                request
                    .clone()
                    .fail(&ToolError::execution_failed(error).with_retryable(true))
            }
        }
    }

    /// Returns `true` if the caller's time was over before the call arrived, which its remaining time
    /// does not tell: a durable queue keeps calls while no worker runs.
    fn is_too_late(&self, cx: &MessageContext) -> bool {
        let limit = headers::timeout(&cx.envelope().headers);
        limit.is_some_and(|limit| self.effects.age(cx.envelope().timestamp) > limit + CLOCK_SKEW)
    }
}

/// Returns the context of a call. It ends a little before the caller's time does, so that the
/// caller learns why.
pub(super) fn context_of(request: &ToolInvokeRequest, cx: &MessageContext) -> CallContext {
    let call = cx.call_context(request.session_id.as_str());
    match headers::timeout(&cx.envelope().headers) {
        Some(limit) => {
            let deadline = cx.received() + (limit - (limit / 10).min(ANSWER_TIME));
            call.with_deadline(deadline)
        }
        None => call,
    }
}

pub(super) async fn fail(request: &ToolInvokeRequest, error: &ToolError, cx: &MessageContext) -> Result<(), BusError> {
    answer(&ToolErrorMessage::new(request, error), cx).await
}

/// Publishes the answer to the caller's reply topic, or to the common topic of tool results.
pub(super) async fn answer<M: Message + Serialize>(payload: &M, cx: &MessageContext) -> Result<(), BusError> {
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
