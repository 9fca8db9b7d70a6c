//! The context of a delivered message: the handler's knowledge about the message, and its way to
//! reply.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tokio::time::Instant;

use super::{BusError, Delivery, Message, MessageEnvelope, MessagePublisher, MessagePublisherExt as _, Reach, headers};
use crate::context::{Origin, Trust};
use crate::{AgentIdentity, CallContext, Principal, TraceContext};

/// A delivery together with the host that received it. Handlers and tower layers around messages
/// get it. Cheap to clone.
#[derive(Clone)]
pub struct MessageContext(Arc<Received>);

#[derive(Clone)]
struct Received {
    delivery: Delivery,
    at: Instant,
    trace: Option<TraceContext>,
    host: Arc<HostContext>,
}

/// The data that all deliveries of a host share.
struct HostContext {
    identity: AgentIdentity,
    publisher: Arc<dyn MessagePublisher>,
}

/// A factory of the contexts of one host's deliveries.
#[derive(Clone)]
pub struct MessageContexts(Arc<HostContext>);

impl MessageContexts {
    /// Creates the factory for the agent `identity`, whose handlers publish through `publisher`.
    pub fn new(identity: AgentIdentity, publisher: Arc<dyn MessagePublisher>) -> Self {
        Self(Arc::new(HostContext { identity, publisher }))
    }

    /// Creates the context of a delivery that arrived now.
    pub fn of(&self, delivery: Delivery) -> MessageContext {
        MessageContext(Arc::new(Received {
            trace: headers::trace(&delivery.envelope.headers),
            delivery,
            at: Instant::now(),
            host: Arc::clone(&self.0),
        }))
    }
}

impl fmt::Debug for MessageContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageContexts").field(&self.0.identity).finish()
    }
}

impl MessageContext {
    /// Returns the message.
    pub fn envelope(&self) -> &MessageEnvelope {
        &self.0.delivery.envelope
    }

    /// Returns the delivery: the message, its topic, the attempt and the trust of the channel.
    pub fn delivery(&self) -> &Delivery {
        &self.0.delivery
    }

    /// Returns the identity of the agent that handles the message.
    pub fn identity(&self) -> &AgentIdentity {
        &self.0.host.identity
    }

    /// Returns the publisher for the handler's own messages.
    pub fn publisher(&self) -> &Arc<dyn MessagePublisher> {
        &self.0.host.publisher
    }

    /// Returns the time of arrival.
    pub fn received(&self) -> Instant {
        self.0.at
    }

    /// Returns the position in a trace of the work on this message: in a host the position of its
    /// span, else the sender's, if the sender sent a valid position.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.0.trace.as_ref()
    }

    /// Sets the position in a trace of the work on this message. The host does so before its layers
    /// and handlers.
    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        Arc::make_mut(&mut self.0).trace = Some(trace);
        self
    }

    /// Returns the principal on whose behalf the message was sent, with `user` for a sender that
    /// names no principal.
    ///
    /// An untrusted channel cannot vouch for the claim: its principals get the prefix `untrusted/`,
    /// so that they never coincide with a principal of a trusted channel.
    pub fn principal(&self, user: Option<&str>) -> Principal {
        let claimed = self.envelope().headers.get(headers::PRINCIPAL).map(String::as_str);
        let claimed = claimed.or(user).filter(|name| !name.is_empty());
        match (self.0.delivery.trust, claimed) {
            (Trust::Untrusted, name) => format!("untrusted/{}", name.unwrap_or_default()).into(),
            (_, Some(name)) => name.into(),
            (_, None) => Principal::default(),
        }
    }

    /// Creates the context of calls that the handler makes in `session`: origin [`Origin::Bus`], the
    /// trust of the channel (at most [`Trust::User`]), the position in the trace, and the sender's
    /// remaining time and idempotency key. If the sender gave no key, the key is derived from its
    /// name and the message id.
    pub fn call_context(&self, session: &str) -> CallContext {
        let headers = &self.envelope().headers;
        let mut cx = CallContext::new(session)
            .with_principal(self.principal(None))
            .with_idempotency_key(self.idempotency_key())
            .with_origin(Origin::Bus)
            .with_trust(self.0.delivery.trust.min(Trust::User))
            // It is unknown which texts the model of the sending program had read.
            .with_content_trust(Trust::Untrusted);
        if let Some(limit) = headers::timeout(headers) {
            cx = cx.with_deadline(self.received() + limit);
        }
        match self.trace() {
            Some(trace) => cx.with_trace(trace.clone()),
            None => cx,
        }
    }

    /// Returns the sender's key. A key from an untrusted channel gets a prefix, so that it cannot
    /// collide with the key of a trusted sender.
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

    /// Publishes `payload` under the topic of its type, with this agent as the source and the trace
    /// of this message.
    ///
    /// # Errors
    ///
    /// Returns an error as [`MessagePublisherExt::send`](super::MessagePublisherExt::send) does.
    pub async fn publish<M: Message + Serialize + Sync>(&self, payload: &M) -> Result<Reach, BusError> {
        let topic = M::TOPIC.ok_or(BusError::NoTopic(M::TYPE))?;
        self.publisher()
            .publish(topic, Arc::new(self.envelope_of(payload)?))
            .await
    }

    /// Replies to the message, with this agent as the source and the trace of this message. Does
    /// nothing if the sender named no reply topic.
    ///
    /// # Errors
    ///
    /// Returns an error if the payload cannot be serialized, and as
    /// [`MessagePublisher::publish`](super::MessagePublisher::publish) does.
    pub async fn reply<M: Message + Serialize + Sync>(&self, payload: &M) -> Result<Reach, BusError> {
        self.publisher()
            .reply(self.envelope(), self.envelope_of(payload)?)
            .await
    }

    fn envelope_of<M: Message + Serialize>(&self, payload: &M) -> Result<MessageEnvelope, BusError> {
        let mut envelope = MessageEnvelope::of(payload)?.with_source(Arc::clone(self.identity().name()));
        if let Some(trace) = self.trace() {
            headers::set_trace(trace, &mut envelope.headers);
        }
        Ok(envelope)
    }
}

impl fmt::Debug for MessageContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageContext")
            .field("delivery", &self.0.delivery)
            .field("identity", &self.0.host.identity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;

    /// A publisher that drops everything.
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
    fn an_untrusted_principal_never_equals_one_of_a_trusted_channel() {
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
