//! The message pipeline: from a delivery to its handler, and from the handler's result to the
//! verdict on the message.
//!
//! A delivery passes, from the outside in:
//!
//! 1. one fused guard, which deduplicates redelivered messages, turns panics and errors into a
//!    [`Disposition`], and gives each message a span, a metric and a line in the log (this file
//!    and `dedup`);
//! 2. the check of the reply topic (`replies`);
//! 3. the user's tower layers;
//! 4. the handler of the message type within its time limit (`router`).
//!
//! The guard is one future and not a stack of layers, because its parts share the [`Route`] of
//! the message, which is looked up once per delivery. The pipeline has no queue and no limit of
//! its own: the subscription sets the concurrency, and stock tower layers limit it further.

mod dedup;
mod meters;
mod replies;
mod router;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use rockbot_core::BoxError;
use rockbot_core::messaging::{Delivery, DeliveryHandler, Disposition, HandlerError, MessageContext, MessageContexts};
use rockbot_core::support::{caught, loggable};
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

pub(crate) use replies::ReplyTopics;
pub(crate) use router::{HostRoute, Router};

use crate::layer::{Layers, Stack, call};
use crate::telemetry::Traces;
use dedup::{Admission, DedupWindow};
use router::Route;

/// Maximum duration of a handler's call unless the host sets another limit.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5 * 60);

/// The delivery handler of a host, which dispatches messages to the handlers of their types.
#[derive(Debug)]
pub(crate) struct Pipeline {
    contexts: MessageContexts,
    router: Arc<Router>,
    /// `None` without user layers: then handlers are called directly.
    stack: Option<Stack<MessageContext, Disposition>>,
    reply_topics: ReplyTopics,
    dedup: DedupWindow,
    traces: Traces,
    /// Cancelled when the host has ended. A shared bus outlives its host and must get a verdict on
    /// each message.
    abort: CancellationToken,
}

impl Pipeline {
    /// Creates a pipeline that calls the handlers of `router` through `layers`.
    pub(crate) fn new(
        contexts: MessageContexts,
        router: Router,
        layers: Layers<MessageContext, Disposition>,
        reply_topics: ReplyTopics,
        abort: CancellationToken,
    ) -> Self {
        let router = Arc::new(router);
        let stack = layers.around(&router, |router, cx: MessageContext| async move {
            // Not the route of the delivery: a layer may pass on another message, of another type.
            let route = router.route(&cx.envelope().message_type);
            Ok::<_, BoxError>(route.handle(&cx).await)
        });
        Self {
            contexts,
            router,
            stack,
            reply_topics,
            dedup: DedupWindow::default(),
            traces: Traces::default(),
            abort,
        }
    }

    /// Sets the source of the positions of deliveries in traces.
    pub(crate) fn traces(mut self, traces: Traces) -> Self {
        self.traces = traces;
        self
    }

    /// Dispatches a message unless it is a duplicate, which is acknowledged without being handled.
    async fn dispatch_once(&self, route: &Route, cx: &MessageContext) -> Disposition {
        let key = self.dedup.key(cx.envelope(), route.is_idempotent());
        match self.dedup.enter(key).await {
            Admission::Duplicate => {
                metrics::counter!("rockbot.pipeline.duplicates").increment(1);
                Disposition::Ack
            }
            Admission::New(guard) => {
                let verdict = self.dispatch(route, cx).await;
                guard.settle(&verdict);
                verdict
            }
        }
    }

    async fn dispatch(&self, route: &Route, cx: &MessageContext) -> Disposition {
        if let Err(reason) = self.reply_topics.check(cx.envelope()) {
            return Disposition::dead_letter(reason);
        }
        let Some(stack) = &self.stack else {
            return route.handle(cx).await;
        };
        // Layers are user code as handlers are. The route isolates the handler; this isolates the layers
        // around it.
        match caught(AssertUnwindSafe(call(stack, cx.clone())).catch_unwind().await) {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => after_layer(error),
            Err(panic) => Disposition::retry(format_args!("a message layer panicked: {panic}")),
        }
    }
}

/// Converts the error of a layer like the error of a handler: a `HandlerError` says whether
/// another delivery helps.
fn after_layer(error: BoxError) -> Disposition {
    let error = HandlerError::from(error);
    let reason = format!("a message layer failed: {error}");
    if error.retry_helps() {
        Disposition::retry(reason)
    } else {
        Disposition::dead_letter(reason)
    }
}

#[async_trait]
impl DeliveryHandler for Pipeline {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        let cx = self.contexts.of(delivery);
        let route = self.router.route(&cx.envelope().message_type);
        let span = span(&cx);
        // The sender's header is the parent; the work and the messages of the handler are below
        // this delivery.
        let place = self.traces.place(&span, cx.trace());
        let cx = cx.with_trace(place);
        let handling = self.dispatch_once(route, &cx).instrument(span.clone());
        // Cancel point: if the host ends here, the handler is dropped at its current await and the dedup
        // guard with it, so a redelivery is handled by the next host.
        let verdict = self.abort.run_until_cancelled(handling).await;
        let verdict = verdict.unwrap_or_else(|| route.interrupted());
        route.meters().record(&verdict, cx.received().elapsed());
        span.in_scope(|| log(&verdict));
        verdict
    }
}

/// Creates the span of one delivery. `traceparent` is the sender's.
fn span(cx: &MessageContext) -> Span {
    let envelope = cx.envelope();
    let delivery = cx.delivery();
    tracing::info_span!(
        "dispatch",
        otel.kind = "consumer",
        message_type = %loggable(&envelope.message_type),
        message_id = %loggable(envelope.message_id.as_str()),
        source = %loggable(&envelope.source),
        topic = %loggable(&delivery.topic),
        attempt = delivery.attempt,
        traceparent = cx.trace().map(tracing::field::display),
        trace_id = Empty,
        span_id = Empty,
    )
}

fn log(verdict: &Disposition) {
    match verdict {
        Disposition::Ack => tracing::debug!("message handled"),
        Disposition::Retry { reason } => {
            tracing::warn!(reason = %loggable(reason), "message failed; it will be retried")
        }
        Disposition::DeadLetter { reason } => {
            tracing::warn!(reason = %loggable(reason), "message rejected as a dead letter")
        }
    }
}
