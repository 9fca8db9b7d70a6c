//! What a handler knows about its message, and how it answers.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tokio::time::Instant;

use super::{BusError, Delivery, Message, MessageEnvelope, MessagePublisher, MessagePublisherExt as _, Reach, headers};
use crate::context::{Origin, Trust};
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
    /// with the sender's trace, remaining time and idempotency key. Without a key of the sender's the message is its
    /// own: who sent it, and its id.
    pub fn call_context(&self, session: &str) -> CallContext {
        let headers = &self.envelope().headers;
        let mut cx = CallContext::new(session)
            .with_principal(self.principal(None))
            .with_idempotency_key(self.idempotency_key())
            .with_origin(Origin::Bus)
            .with_trust(self.0.delivery.trust.min(Trust::User))
            // Nobody knows what the asking program had read.
            .with_content_trust(Trust::Untrusted);
        if let Some(limit) = headers::timeout(headers) {
            cx = cx.with_deadline(self.received() + limit);
        }
        match headers::TraceContext::extract(headers) {
            Some(trace) => cx.with_trace(trace.traceparent()),
            None => cx,
        }
    }

    /// The sender's key; a channel that does not vouch for its senders cannot give somebody else's.
    fn idempotency_key(&self) -> String {
        let envelope = self.envelope();
        let key = match envelope.headers.get(headers::IDEMPOTENCY_KEY) {
            Some(key) => key.clone(),
            None => format!("{}/{}", envelope.source, envelope.message_id),
        };
        match self.delivery().trust {
            Trust::Untrusted => format!("untrusted/{key}"),
            Trust::User | Trust::Host => key,
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

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;

    /// Publishes nothing.
    #[derive(Debug)]
    struct Nowhere;

    #[async_trait]
    impl MessagePublisher for Nowhere {
        async fn publish(&self, _: &str, _: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
            Ok(Reach::NoSubscribers)
        }
    }

    fn cx(trust: Trust, written: &[(&str, &str)]) -> MessageContext {
        let mut envelope = MessageEnvelope::new("t", "").with_id("m1").with_source("cli");
        for (name, value) in written {
            envelope = envelope.with_header(*name, *value);
        }
        let contexts = MessageContexts::new(AgentIdentity::new("clerk"), Arc::new(Nowhere));
        contexts.of(Delivery {
            topic: "t".into(),
            envelope: Arc::new(envelope),
            attempt: 1,
            trust,
        })
    }

    #[test]
    fn a_stranger_is_kept_apart_from_everybody_whom_a_channel_vouches_for() {
        let boss = [(headers::PRINCIPAL, "boss")];
        let empty = [(headers::PRINCIPAL, "")];
        for (trust, written, user, expected) in [
            (Trust::User, &boss[..], None, "boss"),
            (Trust::User, &boss, Some("ann"), "boss"),
            (Trust::User, &[], Some("ann"), "ann"),
            (Trust::User, &[], Some(""), "local"),
            (Trust::User, &[], None, "local"),
            (Trust::User, &empty, None, "local"),
            (Trust::Host, &boss, None, "boss"),
            (Trust::Untrusted, &boss, Some("ann"), "untrusted/boss"),
            (Trust::Untrusted, &[], Some("ann"), "untrusted/ann"),
            (Trust::Untrusted, &[], None, "untrusted/"),
        ] {
            let principal = cx(trust, written).principal(user);
            assert_eq!(principal.as_str(), expected, "{trust:?} {written:?} {user:?}");
        }
    }

    #[test]
    fn a_call_of_another_program_has_its_key() {
        let key = |trust, written: &[(&str, &str)]| {
            let call = cx(trust, written).call_context("session");
            call.idempotency_key(&"call_1".into())
        };
        let written = [(headers::IDEMPOTENCY_KEY, "turn-1/call_1")];
        assert_eq!(key(Trust::User, &written), "turn-1/call_1");
        assert_eq!(key(Trust::User, &[]), "cli/m1");
        assert_eq!(key(Trust::Untrusted, &written), "untrusted/turn-1/call_1");
    }
}
