//! What a handler knows about its message, and how it answers.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tokio::time::Instant;

use super::{BusError, Delivery, Message, MessageEnvelope, MessagePublisher, MessagePublisherExt as _, Reach, headers};
use crate::context::{Door, Trust};
use crate::{AgentIdentity, CallContext, Principal};

/// A delivery, and the host that it reached: what handlers, and tower layers on messages, see. Cheap to clone.
#[derive(Clone)]
pub struct MessageContext(Arc<Received>);

struct Received {
    delivery: Delivery,
    at: Instant,
    home: Arc<Home>,
}

/// What all deliveries of a host have in common.
struct Home {
    identity: AgentIdentity,
    publisher: Arc<dyn MessagePublisher>,
}

/// Makes the contexts of one host's deliveries.
#[derive(Clone)]
pub struct MessageContexts(Arc<Home>);

impl MessageContexts {
    /// Contexts of the agent `identity`, whose handlers publish through `publisher`.
    pub fn new(identity: AgentIdentity, publisher: Arc<dyn MessagePublisher>) -> Self {
        Self(Arc::new(Home { identity, publisher }))
    }

    /// The context of a delivery that came now.
    pub fn of(&self, delivery: Delivery) -> MessageContext {
        MessageContext(Arc::new(Received {
            delivery,
            at: Instant::now(),
            home: Arc::clone(&self.0),
        }))
    }
}

impl fmt::Debug for MessageContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageContexts").field(&self.0.identity).finish()
    }
}

impl MessageContext {
    /// The message.
    pub fn envelope(&self) -> &MessageEnvelope {
        &self.0.delivery.envelope
    }

    /// The message, and how it came.
    pub fn delivery(&self) -> &Delivery {
        &self.0.delivery
    }

    /// The agent that handles it.
    pub fn identity(&self) -> &AgentIdentity {
        &self.0.home.identity
    }

    /// Where the handler publishes messages of its own.
    pub fn publisher(&self) -> &Arc<dyn MessagePublisher> {
        &self.0.home.publisher
    }

    /// When it came.
    pub fn received(&self) -> Instant {
        self.0.at
    }

    /// On whose behalf the message was sent, with `user` for a sender who names no principal.
    ///
    /// A channel that does not vouch for its senders cannot say: what they claim is kept apart from everybody
    /// whom another channel vouches for.
    pub fn principal(&self, user: Option<&str>) -> Principal {
        let claimed = self.envelope().headers.get(headers::PRINCIPAL).map(String::as_str);
        let claimed = claimed.or(user).filter(|name| !name.is_empty());
        match (self.0.delivery.trust, claimed) {
            (Trust::Untrusted, name) => format!("untrusted/{}", name.unwrap_or_default()).into(),
            (_, Some(name)) => name.into(),
            (_, None) => Principal::default(),
        }
    }

    /// The context of calls that the handler makes in `session`: through the bus, with the trust of the channel, and
    /// with the sender's trace and remaining time.
    pub fn call_context(&self, session: &str) -> CallContext {
        let headers = &self.envelope().headers;
        let mut cx = CallContext::new(session)
            .with_principal(self.principal(None))
            .with_door(Door::Bus)
            .with_trust(self.0.delivery.trust.min(Trust::User));
        if let Some(limit) = headers::timeout(headers) {
            cx = cx.with_deadline(self.received() + limit);
        }
        match headers::TraceContext::extract(headers) {
            Some(trace) => cx.with_trace(trace.traceparent()),
            None => cx,
        }
    }

    /// Publishes `payload` under its own topic, in the name of this agent.
    ///
    /// # Errors
    ///
    /// Fails as [`MessagePublisherExt::send`](super::MessagePublisherExt::send) does.
    pub async fn publish<M: Message + Serialize + Sync>(&self, payload: &M) -> Result<Reach, BusError> {
        self.publisher().send(self.identity().name(), payload).await
    }

    /// Answers the message, in the name of this agent. Reaches nobody when the sender wants no answer.
    ///
    /// # Errors
    ///
    /// Fails when the payload cannot be written, and as
    /// [`MessagePublisher::publish`](super::MessagePublisher::publish) does.
    pub async fn reply<M: Message + Serialize + Sync>(&self, payload: &M) -> Result<Reach, BusError> {
        let reply = MessageEnvelope::of(payload)?.with_source(Arc::clone(self.identity().name()));
        self.publisher().reply(self.envelope(), reply).await
    }
}

impl fmt::Debug for MessageContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageContext")
            .field("delivery", &self.0.delivery)
            .field("identity", &self.0.home.identity)
            .finish_non_exhaustive()
    }
}
