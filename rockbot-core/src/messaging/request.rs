//! Request and reply over a bus.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex as FairMutex, OnceCell, oneshot};
use tokio::time;

use super::{
    Bus, BusError, Delivery, DeliveryHandler, Disposition, ErrorReply, Message, MessageEnvelope, PayloadError, Reach,
    SubscribeOptions, Subscription, TopicPattern, headers,
};
use crate::support::FoldMap;
use crate::{IdSource, RandomIds};

/// A client that sends requests over a bus and waits for their replies.
///
/// All requests of a client share one ephemeral reply subscription, which the first request
/// opens. A reply finds its request by the correlation id alone, which is random and used once. A
/// request is abandoned when its time limit is over, when its future is dropped, or when the bus
/// closes; a reply that arrives later is counted and dropped, as is a second reply. Share a
/// client in an `Arc`: it serves any number of concurrent requests.
///
/// ```
/// use rockbot_core::messaging::{Message, RequestClient, RequestError};
///
/// #[derive(serde::Serialize)]
/// struct Ask { city: String }
///
/// impl Message for Ask {
///     const TYPE: &'static str = "weather.Ask";
/// }
///
/// #[derive(serde::Deserialize)]
/// struct Forecast { degrees: i32 }
///
/// impl Message for Forecast {
///     const TYPE: &'static str = "weather.Forecast";
/// }
///
/// async fn degrees(client: &RequestClient, city: &str) -> Result<i32, RequestError> {
///     let forecast: Forecast = client.request("weather", &Ask { city: city.to_owned() }).await?;
///     Ok(forecast.degrees)
/// }
/// ```
#[derive(Debug)]
pub struct RequestClient {
    bus: Arc<dyn Bus>,
    source: Arc<str>,
    reply_topic: Arc<str>,
    /// The name of the reply subscription; `None` for the name of the topic.
    reply_subscription: Option<Arc<str>>,
    time_limit: Duration,
    ids: Arc<dyn IdSource>,
    waiting: Arc<PendingRequests>,
    subscription: OnceCell<Subscription>,
    /// The requests that began before the client subscribed to replies wait here, in their order, each
    /// with a clone.
    first_requests: Arc<FairMutex<()>>,
}

impl RequestClient {
    /// Creates a client that sends as the program `source`, waits up to 3 minutes for each reply, and
    /// receives replies under a random topic of its own.
    pub fn new(bus: Arc<dyn Bus>, source: impl Into<Arc<str>>) -> Self {
        Self {
            bus,
            source: source.into(),
            reply_topic: format!("reply.{}", RandomIds.next_id()).into(),
            reply_subscription: None,
            time_limit: Duration::from_secs(180),
            ids: Arc::new(RandomIds),
            waiting: Arc::default(),
            subscription: OnceCell::new(),
            first_requests: Arc::default(),
        }
    }

    /// Sets the topic of replies. Clients that share a topic need
    /// [subscriptions](Self::with_reply_subscription) of their own, or each would drop the other's
    /// replies.
    #[must_use]
    pub fn with_reply_topic(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.reply_topic = topic.into();
        self
    }

    /// Sets the name of the reply subscription. Default: the reply topic. Clients with subscriptions
    /// of their own each get all replies under a shared topic, and count the replies to the other
    /// clients as [stray](Self::stray_replies).
    #[must_use]
    pub fn with_reply_subscription(mut self, name: impl Into<Arc<str>>) -> Self {
        self.reply_subscription = Some(name.into());
        self
    }

    /// Sets the maximum time to wait for a reply. Default 3 minutes. A shorter `rb-timeout-ms` header
    /// of a request takes precedence.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets the source of correlation ids. A test passes a deterministic source, so that it can
    /// assert whole messages. The default is random: another program that guesses an id could forge a
    /// reply.
    #[must_use]
    pub fn with_ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Sends a request with a typed body and parses the reply.
    ///
    /// # Errors
    ///
    /// Returns an error as [`RequestClient::call`] does, and if the request cannot be serialized or
    /// the reply is not an `A`.
    pub async fn request<Q, A>(&self, topic: &str, question: &Q) -> Result<A, RequestError>
    where
        Q: Message + Serialize + Sync,
        A: Message + DeserializeOwned,
    {
        let answer = self.call(topic, MessageEnvelope::of(question)?).await?;
        Ok(answer.payload()?)
    }

    /// Sends a request and waits for the reply, whatever its type is. An [`ErrorReply`] is an error.
    ///
    /// Cancel safety: dropping the future abandons the request. The program that serves it is not
    /// notified.
    ///
    /// # Errors
    ///
    /// Returns an error if no subscription matches `topic`, no reply arrives in time, the reply is an
    /// [`ErrorReply`], or the bus fails or closes.
    pub async fn call(&self, topic: &str, question: MessageEnvelope) -> Result<Arc<MessageEnvelope>, RequestError> {
        self.ask(topic, question, None).await
    }

    /// Sends a request that is answered by several messages. `is_answer` gets each of them, in order
    /// of arrival, and returns `true` for the final one, which this method returns. The time limit
    /// covers the whole exchange.
    ///
    /// # Errors
    ///
    /// Returns an error as [`RequestClient::call`] does.
    pub async fn call_until(
        &self,
        topic: &str,
        question: MessageEnvelope,
        is_answer: impl Fn(&MessageEnvelope) -> bool + Send + Sync + 'static,
    ) -> Result<Arc<MessageEnvelope>, RequestError> {
        self.ask(topic, question, Some(Arc::new(is_answer))).await
    }

    async fn ask(
        &self,
        topic: &str,
        mut question: MessageEnvelope,
        is_answer: Option<IsAnswer>,
    ) -> Result<Arc<MessageEnvelope>, RequestError> {
        let asked = headers::timeout(&question.headers).unwrap_or(self.time_limit);
        let limit = asked.min(self.time_limit);
        let correlation: Arc<str> = self.ids.next_id().into();
        question.correlation_id = Some(Arc::clone(&correlation));
        question.reply_to = Some(Arc::clone(&self.reply_topic));
        if question.source.is_empty() {
            question.source = Arc::clone(&self.source);
        }
        let is_sending = AtomicBool::new(false);
        let exchange = self.exchange(topic, question, correlation, is_answer, &is_sending);
        match time::timeout(limit, exchange).await {
            Ok(answer) => answer,
            Err(_) if is_sending.into_inner() => Err(RequestError::TimedOut {
                topic: topic.to_owned(),
                after: limit,
            }),
            Err(_) => Err(RequestError::not_sent(topic, None)),
        }
    }

    /// Returns the maximum time that the client waits for a reply.
    pub fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Returns the number of replies that were dropped because no request waited for them: they were
    /// late, came twice, or answered a request of another client.
    pub fn stray_replies(&self) -> u64 {
        self.waiting.stray.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that wait for their reply.
    pub fn open_requests(&self) -> usize {
        self.waiting.lock().len()
    }

    async fn exchange(
        &self,
        topic: &str,
        question: MessageEnvelope,
        correlation: Arc<str>,
        is_answer: Option<IsAnswer>,
        is_sending: &AtomicBool,
    ) -> Result<Arc<MessageEnvelope>, RequestError> {
        // A request that begins later is sent later, too.
        if !self.subscription.initialized() || Arc::strong_count(&self.first_requests) > 1 {
            let first_requests = Arc::clone(&self.first_requests);
            let _turn = first_requests.lock().await;
            let listening = self.subscription.get_or_try_init(|| self.listen()).await;
            listening.map_err(|error| RequestError::not_sent(topic, Some(error)))?;
        }
        is_sending.store(true, Ordering::Relaxed);
        let waiter = Waiter::new(&self.waiting, correlation, is_answer);
        if self.bus.publish(topic, Arc::new(question)).await? == Reach::NoSubscribers {
            return Err(RequestError::NoSubscribers(topic.to_owned()));
        }
        let answer = waiter.answer().await.ok_or(BusError::Closed)?;
        if answer.message_type == ErrorReply::TYPE {
            return Err(RequestError::Refused(answer.payload()?));
        }
        Ok(answer)
    }

    async fn listen(&self) -> Result<Subscription, BusError> {
        let pattern = TopicPattern::new(&self.reply_topic)?;
        let replies = Arc::new(Replies(Arc::clone(&self.waiting)));
        let name = self.reply_subscription.as_ref().unwrap_or(&self.reply_topic);
        let options = SubscribeOptions::new().ephemeral();
        self.bus.subscribe(pattern, name, options, replies).await
    }
}

/// An error of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// No subscription matches the topic.
    #[error("no subscriber listens to `{0}`: start the service that does")]
    NoSubscribers(String),
    /// The client could not subscribe to its replies, so nothing was sent.
    #[error("nothing was sent under `{topic}`, because replies to it could not be subscribed to")]
    NotSent {
        /// The topic of the request.
        topic: String,
        /// The error of the bus, or `None` if the subscription took too long.
        #[source]
        cause: Option<BusError>,
    },
    /// No reply arrived in time. It is not known whether the request was handled.
    #[error("no answer from `{topic}` within {} ms", after.as_millis())]
    TimedOut {
        /// The topic of the request.
        topic: String,
        /// The time that the client waited.
        after: Duration,
    },
    /// The reply is an error.
    #[error("{0}")]
    Refused(ErrorReply),
    /// The request cannot be serialized, or the reply cannot be parsed.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The bus refused the request, failed or closed.
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl RequestError {
    fn not_sent(topic: &str, cause: Option<BusError>) -> Self {
        Self::NotSent {
            topic: topic.to_owned(),
            cause,
        }
    }

    /// Returns `true` if the same request may succeed a little later. `false` after a time-out: the
    /// request may have been handled, so repeat it only if it may be handled twice.
    pub fn retry_helps(&self) -> bool {
        match self {
            Self::Refused(reply) => reply.is_retryable,
            Self::Bus(error) => error.retry_helps(),
            Self::NotSent { cause, .. } => cause.as_ref().is_none_or(BusError::retry_helps),
            Self::NoSubscribers(_) | Self::TimedOut { .. } | Self::Payload(_) => false,
        }
    }
}

/// The requests that wait for a reply, by correlation id.
#[derive(Debug, Default)]
struct PendingRequests {
    questions: Mutex<Questions>,
    stray: AtomicU64,
}

type Questions = FoldMap<Arc<str>, PendingRequest>;

type IsAnswer = Arc<dyn Fn(&MessageEnvelope) -> bool + Send + Sync>;

#[derive(Debug)]
struct PendingRequest {
    /// Decides which message is the final reply; `None` if the first message is.
    is_answer: Option<AnswerPredicate>,
    answer: oneshot::Sender<Arc<MessageEnvelope>>,
}

struct AnswerPredicate(IsAnswer);

impl fmt::Debug for AnswerPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerPredicate")
    }
}

impl PendingRequests {
    fn lock(&self) -> MutexGuard<'_, Questions> {
        // No code that can panic runs under the lock, so a poisoned map is consistent.
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, answer: Arc<MessageEnvelope>) {
        let question = answer.correlation_id.as_deref().map(|id| self.find(id, &answer));
        let is_stray = match question {
            Some(ReplyMatch::Partial) => return,
            Some(ReplyMatch::Answered(question)) => question.answer.send(answer).is_err(),
            Some(ReplyMatch::Stray) | None => true,
        };
        if is_stray {
            self.stray.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Removes and returns the request that `answer` is the final reply to.
    fn find(&self, id: &str, answer: &MessageEnvelope) -> ReplyMatch {
        let mut questions = self.lock();
        let predicate = questions.get(id).and_then(|question| question.is_answer.as_ref());
        if let Some(AnswerPredicate(is_answer)) = predicate {
            // The predicate is the caller's code: it runs outside the lock, so that it can neither deadlock
            // nor poison it.
            let is_answer = Arc::clone(is_answer);
            drop(questions);
            if !is_answer(answer) {
                return ReplyMatch::Partial;
            }
            questions = self.lock();
        }
        questions.remove(id).map_or(ReplyMatch::Stray, ReplyMatch::Answered)
    }
}

/// The match of a reply with the waiting requests.
enum ReplyMatch {
    Answered(PendingRequest),
    /// A request waits for it, but this is not the final reply.
    Partial,
    Stray,
}

/// A request that waits. Dropping it removes its entry.
struct Waiter<'a> {
    waiting: &'a PendingRequests,
    correlation: Arc<str>,
    answer: oneshot::Receiver<Arc<MessageEnvelope>>,
    /// `true` once the entry was removed, with the reply.
    is_settled: bool,
}

impl<'a> Waiter<'a> {
    fn new(waiting: &'a PendingRequests, correlation: Arc<str>, is_answer: Option<IsAnswer>) -> Self {
        let (sender, answer) = oneshot::channel();
        let question = PendingRequest {
            is_answer: is_answer.map(AnswerPredicate),
            answer: sender,
        };
        waiting.lock().insert(Arc::clone(&correlation), question);
        Self {
            waiting,
            correlation,
            answer,
            is_settled: false,
        }
    }

    /// Waits for the reply. Returns `None` if the reply subscription ended.
    async fn answer(mut self) -> Option<Arc<MessageEnvelope>> {
        let answer = (&mut self.answer).await.ok();
        self.is_settled = true;
        answer
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.waiting.lock().remove(&self.correlation);
        }
    }
}

/// The handler of the reply subscription. When the bus ends the subscription it drops this, which
/// wakes all waiting requests.
struct Replies(Arc<PendingRequests>);

#[async_trait]
impl DeliveryHandler for Replies {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        self.0.settle(delivery.envelope);
        Disposition::Ack
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CloseReport, MessagePublisher, MessageSubscriber};
    use super::*;

    /// A bus whose subscriptions fail, or never come about.
    #[derive(Debug)]
    struct Deaf {
        fails: bool,
    }

    #[async_trait]
    impl MessagePublisher for Deaf {
        async fn publish(&self, _: &str, _: Arc<MessageEnvelope>) -> Result<Reach, BusError> {
            panic!("a request whose reply cannot arrive is not sent");
        }
    }

    #[async_trait]
    impl MessageSubscriber for Deaf {
        async fn subscribe(
            &self,
            _: TopicPattern,
            _: &str,
            _: SubscribeOptions,
            _: Arc<dyn DeliveryHandler>,
        ) -> Result<Subscription, BusError> {
            if self.fails {
                return Err(BusError::Closed);
            }
            std::future::pending().await
        }
    }

    #[async_trait]
    impl Bus for Deaf {
        async fn close(&self, _: Duration) -> CloseReport {
            CloseReport::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_whose_reply_cannot_arrive_is_not_sent() {
        for fails in [true, false] {
            let client = RequestClient::new(Arc::new(Deaf { fails }), "test");
            let asked = client.call("q", MessageEnvelope::new("Q", "{}")).await;
            let Err(RequestError::NotSent { topic, cause }) = asked else {
                panic!("{asked:?}");
            };
            assert_eq!((topic.as_str(), matches!(cause, Some(BusError::Closed))), ("q", fails));
        }
    }
}
