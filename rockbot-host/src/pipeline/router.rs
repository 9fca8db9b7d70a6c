//! Routing of messages to handlers by message type.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{Disposition, ErrorReply, HandlerError, MessageContext, MessageRoute};
use rockbot_core::support::{FoldMap, loggable};
use tokio::time::Instant;

use super::meters::DispatchMeters;
use crate::isolate::{Isolate, Isolated};

/// The handlers of a host by message type.
#[derive(Debug)]
pub(crate) struct Router {
    routes: FoldMap<Arc<str>, Route>,
    /// The route of all types without a handler. They share one, since senders choose the names.
    unknown: Route,
    time_limit: Duration,
}

/// All that the pipeline needs to know about a message type. It is looked up once per delivery
/// and passed along.
#[derive(Debug)]
pub(super) struct Route {
    /// `None` for the route of unknown types.
    handler: Option<MessageRoute>,
    is_idempotent: bool,
    at_most_once: bool,
    time_limit: Duration,
    meters: DispatchMeters,
}

/// A handler with the delivery guarantees that it asks of the pipeline.
#[derive(Debug)]
pub(crate) struct HostRoute {
    handler: MessageRoute,
    is_idempotent: bool,
    at_most_once: bool,
}

impl From<MessageRoute> for HostRoute {
    fn from(handler: MessageRoute) -> Self {
        Self {
            handler,
            is_idempotent: false,
            at_most_once: false,
        }
    }
}

impl HostRoute {
    /// Creates the route of an idempotent handler, which answers a sender who asks again under the
    /// same message id.
    ///
    /// The pipeline still drops exact copies of a message, which are redeliveries by the bus.
    pub(crate) fn idempotent(handler: MessageRoute) -> Self {
        Self {
            is_idempotent: true,
            ..handler.into()
        }
    }

    /// Creates the route of a handler with side effects that must not happen twice.
    ///
    /// Such a handler limits its own time, and a message whose handling was interrupted is not
    /// delivered again.
    pub(crate) fn at_most_once(handler: MessageRoute) -> Self {
        Self {
            at_most_once: true,
            ..handler.into()
        }
    }
}

/// The error of two handlers for one message type.
#[derive(Debug, thiserror::Error)]
#[error("message type `{0}` has two handlers: keep one, or give one of them a type of its own")]
pub(crate) struct TwoHandlers(Arc<str>);

impl Router {
    /// Creates a router without handlers; `time_limit` is the maximum duration of each call of a
    /// handler.
    pub(crate) fn new(time_limit: Duration) -> Self {
        let unknown = Route {
            handler: None,
            is_idempotent: false,
            at_most_once: false,
            time_limit,
            meters: DispatchMeters::new("_unknown".into()),
        };
        Self {
            routes: FoldMap::default(),
            unknown,
            time_limit,
        }
    }

    /// Registers a handler.
    ///
    /// # Errors
    ///
    /// Returns an error if the message type has a handler already, in whatever case it is written.
    pub(crate) fn add(&mut self, route: HostRoute) -> Result<(), TwoHandlers> {
        let message_type = Arc::clone(route.handler.message_type());
        if self.find(&message_type).is_some() {
            return Err(TwoHandlers(message_type));
        }
        let route = Route {
            is_idempotent: route.is_idempotent,
            at_most_once: route.at_most_once,
            time_limit: if route.at_most_once {
                Duration::MAX
            } else {
                self.time_limit
            },
            meters: DispatchMeters::new(Arc::clone(&message_type)),
            handler: Some(route.handler),
        };
        self.routes.insert(message_type, route);
        Ok(())
    }

    /// Returns the route of a message type. The route of a type without a handler refuses its
    /// messages.
    pub(super) fn route(&self, message_type: &str) -> &Route {
        self.find(message_type).unwrap_or(&self.unknown)
    }

    fn find(&self, message_type: &str) -> Option<&Route> {
        // Message types are case-insensitive for compatibility. The scan is the slow path: a sender that
        // writes the type as the handler registered it is found by the hash lookup.
        self.routes.get(message_type).or_else(|| {
            let mut routes = self.routes.iter();
            let matching = routes.find(|(known, _)| known.eq_ignore_ascii_case(message_type));
            matching.map(|(_, route)| route)
        })
    }
}

impl Route {
    pub(super) fn meters(&self) -> &DispatchMeters {
        &self.meters
    }

    /// Reports whether the handler deduplicates by itself, as [`HostRoute::idempotent`] states.
    pub(super) fn is_idempotent(&self) -> bool {
        self.is_idempotent
    }

    /// Returns the verdict on a message that was being handled when the host stopped.
    pub(super) fn interrupted(&self) -> Disposition {
        if self.at_most_once {
            Disposition::dead_letter("the host stopped while it was handled: it may have taken effect")
        } else {
            Disposition::retry("the host stopped while it was handled")
        }
    }

    /// Calls the handler within its time limit and converts its result, or its panic, into a verdict.
    pub(super) async fn handle(&self, cx: &MessageContext) -> Disposition {
        let Some(handler) = &self.handler else {
            return refuse_unknown(cx).await;
        };
        // The time limit starts here: time that the message spent in the queue, or waiting for another
        // copy of it, is not the handler's.
        match Isolate::new(handler.handle(cx), Instant::now(), self.time_limit).await {
            Isolated::Done(Ok(())) => Disposition::Ack,
            Isolated::Done(Err(error)) => failed(cx, error.into()).await,
            Isolated::TimedOut => {
                Disposition::retry(format_args!("the handler took longer than {:?}", self.time_limit))
            }
            Isolated::Panicked(message) => Disposition::retry(format_args!("the handler panicked: {message}")),
        }
    }
}

async fn refuse_unknown(cx: &MessageContext) -> Disposition {
    let message_type = loggable(&cx.envelope().message_type);
    let reason = format!("there is no handler for messages of type `{message_type}`");
    refuse(cx, &reason).await;
    Disposition::DeadLetter { reason }
}

async fn failed(cx: &MessageContext, error: HandlerError) -> Disposition {
    if let Some(reason) = error.refusal() {
        refuse(cx, &reason).await;
    }
    error.into()
}

/// Notifies the sender of a question that it is refused, and why, so that it does not wait until
/// its time-out.
///
/// The reply is published once. A sender that it does not reach waits until its own time limit.
async fn refuse(cx: &MessageContext, reason: &str) {
    if cx.envelope().reply_to.is_none() {
        return;
    }
    let refusal = ErrorReply::new("rejected", reason);
    if let Err(error) = cx.reply(&refusal).await {
        tracing::warn!(%error, "question refused, but the refusal could not be published; its sender will time out");
    }
}
