//! The pipeline: from a delivery to its handler, and to what becomes of the message.
//!
//! A delivery goes through the user's layers to the handler of its message type. Around all of them stands one fused
//! guard: a message that was dealt with before is not handled again, panics and errors become a [`Disposition`], and
//! each message has a span, a metric, and a line in the log. Inside stands the handlers' time limit. Concurrency is
//! set for each subscription; stock tower layers limit it further.

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
use rockbot_core::messaging::{Delivery, DeliveryHandler, Disposition, MessageContext, MessageContexts, headers};
use rockbot_core::support::loggable;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

pub(crate) use replies::ReplyTopics;
pub(crate) use router::{HostRoute, Router};

use crate::isolate::message;
use crate::layer::{Layers, Stack, call};
use dedup::{Admission, Recent};

/// How long a handler may take unless the host says otherwise.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Hands messages to their handlers.
#[derive(Debug)]
pub(crate) struct Pipeline {
    contexts: MessageContexts,
    router: Arc<Router>,
    stack: Option<Stack<MessageContext, Disposition>>,
    reply_topics: ReplyTopics,
    recent: Recent,
    /// Fires when the host has ended: the bus may go on without it.
    abort: CancellationToken,
}

impl Pipeline {
    pub(crate) fn new(
        contexts: MessageContexts,
        router: Router,
        layers: Layers<MessageContext, Disposition>,
        reply_topics: ReplyTopics,
        abort: CancellationToken,
    ) -> Self {
        let router = Arc::new(router);
        let stack = layers.around(&router, |router, cx: MessageContext| async move {
            Ok::<_, BoxError>(router.handle(&cx).await)
        });
        Self {
            contexts,
            router,
            stack,
            reply_topics,
            recent: Recent::default(),
            abort,
        }
    }

    /// Handles a message, unless that was done before.
    async fn once(&self, cx: &MessageContext) -> Disposition {
        let is_idempotent = self.router.is_idempotent(&cx.envelope().message_type);
        match self.recent.enter(self.recent.key(cx.envelope(), is_idempotent)).await {
            Admission::Done => {
                metrics::counter!("rockbot.pipeline.duplicates").increment(1);
                Disposition::Ack
            }
            Admission::Mine(ticket) => {
                let verdict = self.dispatch(cx).await;
                ticket.settle(&verdict);
                verdict
            }
        }
    }

    async fn dispatch(&self, cx: &MessageContext) -> Disposition {
        if let Err(reason) = self.reply_topics.check(cx.envelope()) {
            return Disposition::dead_letter(reason);
        }
        let Some(stack) = &self.stack else {
            return self.router.handle(cx).await;
        };
        // A layer is a user's code as much as a handler is.
        match AssertUnwindSafe(call(stack, cx.clone())).catch_unwind().await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => Disposition::retry(format_args!("a message layer failed: {error}")),
            Err(panic) => Disposition::retry(format_args!("a message layer panicked: {}", message(&*panic))),
        }
    }
}

#[async_trait]
impl DeliveryHandler for Pipeline {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        let cx = self.contexts.of(delivery);
        let span = span(&cx);
        let handling = self.once(&cx).instrument(span.clone());
        let verdict = self.abort.run_until_cancelled(handling).await;
        let verdict = verdict.unwrap_or_else(|| self.router.interrupted(&cx.envelope().message_type));
        self.router
            .meters(&cx.envelope().message_type)
            .record(&verdict, cx.received().elapsed());
        span.in_scope(|| log(&verdict));
        verdict
    }
}

/// The span of one delivery. `traceparent` is the sender's, for a subscriber that joins traces.
fn span(cx: &MessageContext) -> Span {
    let (envelope, delivery) = (cx.envelope(), cx.delivery());
    tracing::info_span!(
        "dispatch",
        otel.kind = "consumer",
        message_type = %loggable(&envelope.message_type),
        message_id = %loggable(envelope.message_id.as_str()),
        source = %loggable(&envelope.source),
        topic = %loggable(&delivery.topic),
        attempt = delivery.attempt,
        traceparent = headers::TraceContext::extract(&envelope.headers).map(|trace| trace.traceparent().to_owned()),
    )
}

fn log(verdict: &Disposition) {
    match verdict {
        Disposition::Ack => tracing::debug!("message handled"),
        Disposition::Retry { reason } => tracing::warn!(reason = %loggable(reason), "message to be delivered again"),
        Disposition::DeadLetter { reason } => tracing::warn!(reason = %loggable(reason), "message given up"),
    }
}
