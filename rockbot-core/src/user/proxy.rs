//! The client of an interface: a terminal, a web page, a chat channel.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{AgentReply, ConversationHistoryRequest, ConversationHistoryResponse, UserFeedback, UserMessage};
use crate::messaging::{
    Bus, BusError, Message, MessageEnvelope, MessagePublisherExt as _, RequestClient, RequestError,
};
use crate::turn::Approval;
use crate::{IdSource as _, RandomIds, SessionId};

/// Talks to agents over a bus on behalf of people.
///
/// Replies come to this proxy alone, under a topic of its own, so that interfaces do not show each other's answers.
///
/// ```no_run
/// # async fn example(bus: std::sync::Arc<dyn rockbot_core::messaging::Bus>) -> Result<(), Box<dyn std::error::Error>> {
/// use rockbot_core::user::UserProxy;
///
/// let proxy = UserProxy::new(bus, "terminal");
/// let reply = proxy.send("session-1", "What is the time?").await?;
/// println!("{}: {}", reply.agent_name, reply.content);
/// # Ok(())
/// # }
/// ```
///
/// What is sent and replied is measured as `rockbot.userproxy.messages_sent` and `rockbot.userproxy.replies_received`
/// (counters; of replies, the final ones), and `rockbot.userproxy.roundtrip.duration` (histogram, milliseconds).
#[derive(Debug)]
pub struct UserProxy {
    id: Arc<str>,
    bus: Arc<dyn Bus>,
    client: RequestClient,
    meters: OnceLock<Meters>,
}

#[derive(Debug)]
struct Meters {
    sent: Counter,
    received: Counter,
    roundtrip: Histogram,
}

impl Meters {
    fn new() -> Self {
        Self {
            sent: counter!("rockbot.userproxy.messages_sent"),
            received: counter!("rockbot.userproxy.replies_received"),
            roundtrip: histogram!("rockbot.userproxy.roundtrip.duration"),
        }
    }
}

impl UserProxy {
    /// The proxy `id`, which waits up to 3 minutes for each reply.
    pub fn new(bus: Arc<dyn Bus>, id: impl Into<Arc<str>>) -> Self {
        let id = id.into();
        let topic = format!("user.response.{id}.{}", RandomIds.next_id());
        let client = RequestClient::new(Arc::clone(&bus), Arc::clone(&id)).with_reply_topic(topic);
        Self {
            id,
            bus,
            client,
            meters: OnceLock::new(),
        }
    }

    /// Waiting up to `limit` for each reply.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.client = self.client.with_time_limit(limit);
        self
    }

    /// Says `text` in the conversation `session` and waits for the final reply.
    ///
    /// # Errors
    ///
    /// Fails as [`UserProxy::send_message`] does.
    pub async fn send(
        &self,
        session: impl Into<SessionId>,
        text: impl Into<String>,
    ) -> Result<AgentReply, RequestError> {
        self.send_message(&UserMessage::new(session, text), |_| {}).await
    }

    /// Sends `message` and waits for the final reply; `report` is given what the agent says before it.
    ///
    /// # Errors
    ///
    /// Fails as [`UserProxy::send_envelope`] does.
    pub async fn send_message(
        &self,
        message: &UserMessage,
        report: impl Fn(AgentReply) + Send + Sync + 'static,
    ) -> Result<AgentReply, RequestError> {
        self.send_envelope(MessageEnvelope::of(message)?, report).await
    }

    /// As [`UserProxy::send_message`], for a [`UserMessage`] in an envelope of one's own: with an id that
    /// [`UserFeedback`] can name, with the trace that it belongs to, with a principal.
    ///
    /// # Errors
    ///
    /// Fails when no agent listens, none replies in time, the bus fails, and when the reply cannot be read. After a
    /// time-out the agent goes on: its answer stands in the conversation's history.
    pub async fn send_envelope(
        &self,
        message: MessageEnvelope,
        report: impl Fn(AgentReply) + Send + Sync + 'static,
    ) -> Result<AgentReply, RequestError> {
        let is_final = move |envelope: &MessageEnvelope| match envelope.payload::<AgentReply>() {
            Ok(reply) if !reply.is_final => {
                report(reply);
                false
            }
            _ => true,
        };
        let topic = topic_of::<UserMessage>()?;
        let (meters, sent) = (self.meters.get_or_init(Meters::new), Instant::now());
        meters.sent.increment(1);
        let answer = self.client.call_until(topic, message, is_final).await?;
        meters.received.increment(1);
        meters.roundtrip.record(sent.elapsed().as_secs_f64() * 1000.0);
        Ok(answer.payload()?)
    }

    /// What was said in the conversation `session`, as far as the agent remembers it.
    ///
    /// # Errors
    ///
    /// Fails when no agent listens, none answers in time, and when the bus fails.
    pub async fn history(&self, session: impl Into<SessionId>) -> Result<ConversationHistoryResponse, RequestError> {
        let session_id = session.into();
        let user_id = String::new();
        self.ask(&ConversationHistoryRequest { session_id, user_id }).await
    }

    /// Sends a question of a type of one's own and waits for its answer.
    ///
    /// # Errors
    ///
    /// Fails as [`RequestClient::request`] does.
    pub async fn ask<Q, A>(&self, question: &Q) -> Result<A, RequestError>
    where
        Q: Message + serde::Serialize + Sync,
        A: Message + DeserializeOwned,
    {
        self.client.request(topic_of::<Q>()?, question).await
    }

    /// Tells the agent whether a reply was good. Nobody answers that.
    ///
    /// # Errors
    ///
    /// Fails when the bus does.
    pub async fn feedback(&self, feedback: &UserFeedback) -> Result<(), BusError> {
        self.bus.send(&self.id, feedback).await.map(drop)
    }

    /// Tells the agent what the person decided about a tool call. Nobody answers that: the turn goes on.
    ///
    /// # Errors
    ///
    /// Fails when the bus does.
    pub async fn decide(&self, decision: &Approval) -> Result<(), BusError> {
        self.bus.send(&self.id, decision).await.map(drop)
    }

    /// How many replies came too late or twice, and were thrown away.
    pub fn stray_replies(&self) -> u64 {
        self.client.stray_replies()
    }
}

fn topic_of<M: Message>() -> Result<&'static str, BusError> {
    M::TOPIC.ok_or(BusError::NoTopic(M::TYPE))
}
