//! Finding the handler of a message type.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::messaging::{Disposition, ErrorReply, MessageContext, MessageRoute};
use rockbot_core::support::loggable;
use tokio::time::Instant;

use super::meters::Meters;
use crate::isolate::{Isolate, Isolated};

/// The handlers of a host, by message type.
#[derive(Debug)]
pub(crate) struct Router {
    routes: HashMap<Arc<str>, Route>,
    unknown: Meters,
    time_limit: Duration,
}

#[derive(Debug)]
struct Route {
    host: HostRoute,
    meters: Meters,
}

/// A handler, and what of the guard it does itself.
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
    /// A handler that knows what to do when its sender asks again under the same message id. Copies of a message are
    /// still kept from it.
    pub(crate) fn idempotent(handler: MessageRoute) -> Self {
        Self {
            is_idempotent: true,
            ..handler.into()
        }
    }

    /// A handler whose work must not happen twice: it limits its own time, and is not asked again when it is cut off.
    pub(crate) fn at_most_once(handler: MessageRoute) -> Self {
        Self {
            at_most_once: true,
            ..handler.into()
        }
    }
}

/// Tells whoever asked a question that there will be no answer, and why. It is told once: a sender whom this does
/// not reach waits until its time is over.
async fn refuse(cx: &MessageContext, reason: &str) {
    if cx.envelope().reply_to.is_none() {
        return;
    }
    let refusal = ErrorReply {
        code: "rejected".to_owned(),
        message: reason.to_owned(),
        is_retryable: false,
    };
    if let Err(error) = cx.reply(&refusal).await {
        tracing::warn!(%error, "a question is not answered, and its sender could not be told");
    }
}

/// Two handlers of one message type.
#[derive(Debug, thiserror::Error)]
#[error("message type `{0}` has two handlers: keep one, or give one of them a type of its own")]
pub(crate) struct TwoHandlers(Arc<str>);

impl Router {
    /// No handlers yet; each may take as long as `time_limit`.
    pub(crate) fn new(time_limit: Duration) -> Self {
        Self {
            routes: HashMap::new(),
            unknown: Meters::new("_unknown".into()),
            time_limit,
        }
    }

    pub(crate) fn add(&mut self, host: HostRoute) -> Result<(), TwoHandlers> {
        let message_type = Arc::clone(host.handler.message_type());
        if self.find(&message_type).is_some() {
            return Err(TwoHandlers(message_type));
        }
        let meters = Meters::new(Arc::clone(&message_type));
        self.routes.insert(message_type, Route { host, meters });
        Ok(())
    }

    /// The meters of a type; all types without a handler share theirs, since names come from outside.
    pub(super) fn meters(&self, message_type: &str) -> &Meters {
        self.find(message_type).map_or(&self.unknown, |route| &route.meters)
    }

    /// Whether the handler of a type knows repetitions of its messages itself.
    pub(super) fn is_idempotent(&self, message_type: &str) -> bool {
        self.find(message_type).is_some_and(|route| route.host.is_idempotent)
    }

    /// What becomes of a message that was being handled when the host ended.
    pub(super) fn interrupted(&self, message_type: &str) -> Disposition {
        match self.find(message_type).is_some_and(|route| route.host.at_most_once) {
            true => Disposition::dead_letter("the host stopped while it was handled: it may have taken effect"),
            false => Disposition::retry("the host stopped while it was handled"),
        }
    }

    /// Hands a message to its handler, and says what becomes of it.
    pub(super) async fn handle(&self, cx: &MessageContext) -> Disposition {
        let message_type = &cx.envelope().message_type;
        let Some(route) = self.find(message_type) else {
            let message_type = loggable(message_type);
            let reason = format!("there is no handler for messages of type `{message_type}`");
            refuse(cx, &reason).await;
            return Disposition::DeadLetter { reason };
        };
        let limit = match route.host.at_most_once {
            true => Duration::MAX,
            false => self.time_limit,
        };
        // Its time begins here: what the message waited for before was not the handler's.
        match Isolate::new(route.host.handler.handle(cx), Instant::now(), limit).await {
            Isolated::Done(Ok(())) => Disposition::Ack,
            Isolated::Done(Err(error)) => {
                if let Some(reason) = error.refusal() {
                    refuse(cx, reason).await;
                }
                error.into()
            }
            Isolated::TimedOut => Disposition::retry(format_args!("the handler took longer than {limit:?}")),
            Isolated::Panicked(message) => Disposition::retry(format_args!("the handler panicked: {message}")),
        }
    }

    /// The original takes no notice of case in message types; who writes it as registered is found faster.
    fn find(&self, message_type: &str) -> Option<&Route> {
        let same = |known: &&Arc<str>| known.eq_ignore_ascii_case(message_type);
        self.routes.get(message_type).or_else(|| {
            let known = self.routes.keys().find(same)?;
            self.routes.get(known)
        })
    }
}
