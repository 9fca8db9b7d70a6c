//! The client for user interfaces: a terminal, a web page, a chat channel.

use std::future::ready;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{
    AgentReply, ConversationHistoryRequest, ConversationHistoryResponse, UserFeedback, UserMessage, UserProxyTopics,
};
use crate::content::Content;
use crate::messaging::{
    Bus, BusError, Delivery, Disposition, Message, MessageEnvelope, MessagePublisherExt as _,
    MessageSubscriberExt as _, RequestClient, RequestError, Subscription,
};
use crate::store::ConversationQuery;
use crate::turn::{Announcement, Approval};
use crate::{IdSource as _, Principal, RandomIds, SessionId};

/// A client that talks to agents over a bus on behalf of users.
///
/// Replies arrive under a topic of this proxy alone, so that interfaces do not show each other's
/// answers.
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
/// It records the metrics `rockbot.userproxy.messages_sent` and
/// `rockbot.userproxy.replies_received` (counters; of replies only the final replies) and
/// `rockbot.userproxy.roundtrip.duration` (histogram, milliseconds).
#[derive(Debug)]
pub struct UserProxy {
    id: Arc<str>,
    bus: Arc<dyn Bus>,
    client: RequestClient,
    user_id: String,
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
    /// Creates the proxy `id`, which waits up to 3 minutes for each reply.
    pub fn new(bus: Arc<dyn Bus>, id: impl Into<Arc<str>>) -> Self {
        let id = id.into();
        let topic = format!("user.response.{id}.{}", RandomIds.next_id());
        let client = RequestClient::new(Arc::clone(&bus), Arc::clone(&id)).with_reply_topic(topic);
        Self {
            id,
            bus,
            client,
            user_id: String::new(),
            meters: OnceLock::new(),
        }
    }

    /// Sets the maximum time to wait for a reply. Default 3 minutes.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.client = self.client.with_time_limit(limit);
        self
    }

    /// Sets the user for whom [`send`](Self::send) and [`history`](Self::history) speak, as in
    /// [`UserMessage::user_id`]. Default: the user that the agent derives from the channel.
    #[must_use]
    pub fn with_user_id(mut self, user_id: impl Into<String>) -> Self {
        self.user_id = user_id.into();
        self
    }

    /// Sends `content`, such as a text, to the conversation `session` and waits for the final reply.
    ///
    /// # Errors
    ///
    /// Returns an error as [`UserProxy::send_message`] does.
    pub async fn send(
        &self,
        session: impl Into<SessionId>,
        content: impl Into<Content>,
    ) -> Result<AgentReply, RequestError> {
        let message = UserMessage::new(session, content).with_user_id(&self.user_id);
        self.send_message(&message, |_| {}).await
    }

    /// Sends `message` and waits for the final reply. `report` gets the progress reports before it,
    /// in order.
    ///
    /// # Errors
    ///
    /// Returns an error as [`UserProxy::send_envelope`] does.
    pub async fn send_message(
        &self,
        message: &UserMessage,
        report: impl Fn(AgentReply) + Send + Sync + 'static,
    ) -> Result<AgentReply, RequestError> {
        self.send_envelope(MessageEnvelope::of(message)?, report).await
    }

    /// Sends a [`UserMessage`] in the caller's own envelope and waits as [`UserProxy::send_message`]
    /// does. Use it to set an id that [`UserFeedback`] can refer to, a trace, or a principal.
    ///
    /// # Errors
    ///
    /// Returns an error if no agent listens, no reply arrives in time, the bus fails, or the reply
    /// cannot be parsed. After a time-out the turn goes on: its answer appears in the conversation's
    /// history.
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
        let meters = self.meters.get_or_init(Meters::new);
        let sent = Instant::now();
        meters.sent.increment(1);
        let answer = self.client.call_until(topic, message, is_final).await?;
        meters.received.increment(1);
        meters.roundtrip.record(sent.elapsed().as_secs_f64() * 1000.0);
        Ok(answer.payload()?)
    }

    /// Returns the history of the conversation `session`, as far as the agent remembers it.
    ///
    /// # Errors
    ///
    /// Returns an error if no agent listens, no answer arrives in time, or the bus fails.
    pub async fn history(&self, session: impl Into<SessionId>) -> Result<ConversationHistoryResponse, RequestError> {
        let request = ConversationHistoryRequest::new(session).with_user_id(&self.user_id);
        self.ask(&request).await
    }

    /// Returns a page of the conversation `session`, as far as the agent remembers it.
    ///
    /// # Errors
    ///
    /// Returns an error as [`UserProxy::history`] does.
    pub async fn history_page(
        &self,
        session: impl Into<SessionId>,
        page: ConversationQuery,
    ) -> Result<ConversationHistoryResponse, RequestError> {
        let request = ConversationHistoryRequest::new(session).with_user_id(&self.user_id);
        self.ask(&request.with_page(page)).await
    }

    /// Sends a request of any type and waits for its answer.
    ///
    /// # Errors
    ///
    /// Returns an error as [`RequestClient::request`] does.
    pub async fn ask<Q, A>(&self, question: &Q) -> Result<A, RequestError>
    where
        Q: Message + serde::Serialize + Sync,
        A: Message + DeserializeOwned,
    {
        self.client.request(topic_of::<Q>()?, question).await
    }

    /// Sends feedback on a reply. The agent does not answer it.
    ///
    /// # Errors
    ///
    /// Returns an error if the bus fails.
    pub async fn feedback(&self, feedback: &UserFeedback) -> Result<(), BusError> {
        self.bus.send(&self.id, feedback).await.map(drop)
    }

    /// Sends the user's decision about a tool call. The agent does not answer it; the turn goes on.
    ///
    /// # Errors
    ///
    /// Returns an error if the bus fails.
    pub async fn decide(&self, decision: &Approval) -> Result<(), BusError> {
        self.bus.send(&self.id, decision).await.map(drop)
    }

    /// Hands the announcements of agents to `hear`: results of work in the background, and requests
    /// for approvals in turns that no caller waits for. With a [user](Self::with_user_id) `hear`
    /// gets the announcements to that user alone, else the announcements to all users: an interface
    /// of many users picks by [`Announcement::principal`]. An announcement that an agent sends
    /// twice, as after a crash, has the same turn and time. Dropping the subscription ends it.
    ///
    /// ```no_run
    /// # async fn example(proxy: rockbot_core::user::UserProxy) -> Result<(), Box<dyn std::error::Error>> {
    /// let hearing = proxy.on_announcement(|said| println!("{}: {}", said.session, said.content.words()));
    /// let _hearing = hearing.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the bus refuses the subscription.
    pub async fn on_announcement(
        &self,
        hear: impl Fn(Announcement) + Send + Sync + 'static,
    ) -> Result<Subscription, BusError> {
        let user = self.user_id.clone();
        let listener = move |delivery: Delivery| {
            let said = announcement_of(&delivery.envelope);
            said.filter(|said| is_to(&user, &said.principal)).map(&hear);
            ready(Disposition::Ack)
        };
        self.bus.on(UserProxyTopics::USER_RESPONSE, &self.id, listener).await
    }

    /// Returns the number of replies that arrived late or twice and were dropped.
    pub fn stray_replies(&self) -> u64 {
        self.client.stray_replies()
    }
}

/// Returns the announcement of a reply that is one, with the content as it was sent.
fn announcement_of(envelope: &MessageEnvelope) -> Option<Announcement> {
    let reply: AgentReply = envelope.payload().ok()?;
    let is_announcement = reply.content_type.as_deref() == Some(AgentReply::ANNOUNCEMENT);
    let data = reply.structured_data.filter(|_| is_announcement)?;
    let mut said: Announcement = serde_json::from_value(data).ok()?;
    said.content = reply.content;
    Some(said)
}

/// Reports whether a principal is `user`, also on a channel that agents do not trust; all are if
/// `user` is empty.
fn is_to(user: &str, principal: &Principal) -> bool {
    let name = principal.as_str();
    user.is_empty() || name.strip_prefix("untrusted/").unwrap_or(name) == user
}

fn topic_of<M: Message>() -> Result<&'static str, BusError> {
    M::TOPIC.ok_or(BusError::NoTopic(M::TYPE))
}
