//! Questions and answers over a bus.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{OnceCell, oneshot};
use tokio::time;

use super::{
    Bus, BusError, Delivery, DeliveryHandler, Disposition, Message, MessageEnvelope, PayloadError, Reach,
    SubscribeOptions, Subscription, TopicPattern, headers,
};
use crate::{IdSource, RandomIds};

/// Asks over a bus and waits for the answer.
///
/// All questions of a client share one ephemeral reply subscription, opened with the first of them. An answer
/// finds its question by the correlation id alone, which is random and used once. A question is given up when
/// its time is over, when its future is dropped, or when the bus closes; an answer that comes later is counted
/// and thrown away, as is a second one.
#[derive(Debug)]
pub struct RequestClient {
    bus: Arc<dyn Bus>,
    source: Arc<str>,
    reply_topic: Arc<str>,
    time_limit: Duration,
    ids: Arc<dyn IdSource>,
    waiting: Arc<Waiting>,
    subscription: OnceCell<Subscription>,
}

impl RequestClient {
    /// A client that asks in the name of the program `source`, waits up to 3 minutes for each answer, and wants
    /// the answers under a topic of its own.
    pub fn new(bus: Arc<dyn Bus>, source: impl Into<Arc<str>>) -> Self {
        Self {
            bus,
            source: source.into(),
            reply_topic: format!("reply.{}", RandomIds.next_id()).into(),
            time_limit: Duration::from_secs(180),
            ids: Arc::new(RandomIds),
            waiting: Arc::default(),
            subscription: OnceCell::new(),
        }
    }

    /// Wanting the answers under `topic`. No other client may use it: each would throw away the other's.
    #[must_use]
    pub fn with_reply_topic(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.reply_topic = topic.into();
        self
    }

    /// Waiting up to `limit` for each answer. A question whose `rb-timeout-ms` header is shorter waits as long
    /// as that says.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Taking correlation ids from `ids`.
    #[must_use]
    pub fn with_ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Asks with a typed body and reads the answer's.
    ///
    /// # Errors
    ///
    /// Fails as [`RequestClient::call`] does, when the question cannot be written, and when the answer is of
    /// another type than `A`.
    pub async fn request<Q, A>(&self, topic: &str, question: &Q) -> Result<A, RequestError>
    where
        Q: Message + Serialize + Sync,
        A: Message + DeserializeOwned,
    {
        let answer = self.call(topic, MessageEnvelope::of(question)?).await?;
        Ok(answer.payload()?)
    }

    /// Asks, and waits for the answer, whatever its type is; [`ErrorReply`] is an error.
    ///
    /// Dropping the future gives the question up. Whoever answers is not told.
    ///
    /// # Errors
    ///
    /// Fails when nobody subscribes to `topic`, when no answer comes in time, when the answer is an error, and
    /// when the bus fails or closes.
    pub async fn call(&self, topic: &str, question: MessageEnvelope) -> Result<Arc<MessageEnvelope>, RequestError> {
        self.ask(topic, question, None).await
    }

    /// As [`RequestClient::call`], for questions that are answered in several messages: `is_answer` is given each of
    /// them, in the order in which they come, and says which one is the answer. The time limit counts to the answer.
    ///
    /// # Errors
    ///
    /// Fails as [`RequestClient::call`] does.
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
        let exchange = self.exchange(topic, question, correlation, is_answer);
        let answer = time::timeout(limit, exchange).await;
        answer.unwrap_or_else(|_| {
            Err(RequestError::TimedOut {
                topic: topic.to_owned(),
                after: limit,
            })
        })
    }

    /// How long the client waits for an answer at most.
    pub fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// How many answers were thrown away because nobody waited for them: they were late, or came twice.
    pub fn stray_replies(&self) -> u64 {
        self.waiting.stray.load(Ordering::Relaxed)
    }

    /// How many questions wait for their answer.
    pub fn open_requests(&self) -> usize {
        self.waiting.lock().len()
    }

    async fn exchange(
        &self,
        topic: &str,
        question: MessageEnvelope,
        correlation: Arc<str>,
        is_answer: Option<IsAnswer>,
    ) -> Result<Arc<MessageEnvelope>, RequestError> {
        self.subscription.get_or_try_init(|| self.listen()).await?;
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
        let options = SubscribeOptions::new().ephemeral();
        self.bus.subscribe(pattern, &self.reply_topic, options, replies).await
    }
}

/// An answer that says why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorReply {
    /// What kind of error, for programs.
    pub code: String,
    /// What happened, for people.
    pub message: String,
    /// Whether the same question may be answered a little later.
    #[serde(default)]
    pub is_retryable: bool,
}

impl Message for ErrorReply {
    const TYPE: &'static str = "rockbot.ErrorReply";
}

impl fmt::Display for ErrorReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// Why a question got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Nobody subscribes to the topic.
    #[error("no subscriber listens to `{0}`: start the service that does")]
    NoSubscribers(String),
    /// The answer did not come in time. Whether the question was dealt with is not known.
    #[error("no answer from `{topic}` within {} ms", after.as_millis())]
    TimedOut {
        /// Where the question was published.
        topic: String,
        /// How long the client waited.
        after: Duration,
    },
    /// The answer is an error.
    #[error("{0}")]
    Refused(ErrorReply),
    /// The question cannot be written, or the answer not be read.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The bus refused, failed or closed.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// The questions that wait, by their correlation ids.
#[derive(Debug, Default)]
struct Waiting {
    questions: Mutex<Questions>,
    stray: AtomicU64,
}

type Questions = HashMap<Arc<str>, Question>;

type IsAnswer = Arc<dyn Fn(&MessageEnvelope) -> bool + Send + Sync>;

#[derive(Debug)]
struct Question {
    /// Says which message is the answer; `None` when the first one is.
    is_answer: Option<Judge>,
    answer: oneshot::Sender<Arc<MessageEnvelope>>,
}

struct Judge(IsAnswer);

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judge")
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Questions> {
        // No code that can panic runs under the lock.
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, answer: Arc<MessageEnvelope>) {
        let question = answer.correlation_id.as_deref().map(|id| self.find(id, &answer));
        let is_stray = match question {
            Some(Found::NotYet) => return,
            Some(Found::Answered(question)) => question.answer.send(answer).is_err(),
            Some(Found::Nobody) | None => true,
        };
        if is_stray {
            self.stray.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes out the question that `answer` is the answer to.
    fn find(&self, id: &str, answer: &MessageEnvelope) -> Found {
        let mut questions = self.lock();
        let judge = questions.get(id).and_then(|question| question.is_answer.as_ref());
        if let Some(Judge(is_answer)) = judge {
            // The judge is a caller's code: it runs outside the lock.
            let is_answer = Arc::clone(is_answer);
            drop(questions);
            if !is_answer(answer) {
                return Found::NotYet;
            }
            questions = self.lock();
        }
        questions.remove(id).map_or(Found::Nobody, Found::Answered)
    }
}

/// Who waits for a message.
enum Found {
    Answered(Question),
    /// Somebody who waits for another one.
    NotYet,
    Nobody,
}

/// One question that waits; forgotten when this is dropped.
struct Waiter<'a> {
    waiting: &'a Waiting,
    correlation: Arc<str>,
    answer: oneshot::Receiver<Arc<MessageEnvelope>>,
    /// Whether the question was taken out.
    is_settled: bool,
}

impl<'a> Waiter<'a> {
    fn new(waiting: &'a Waiting, correlation: Arc<str>, is_answer: Option<IsAnswer>) -> Self {
        let (sender, answer) = oneshot::channel();
        let question = Question {
            is_answer: is_answer.map(Judge),
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

    /// The answer; `None` when none can come any more.
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

/// Receives the answers. A bus that ends the subscription drops this, and with it every hope of an answer.
struct Replies(Arc<Waiting>);

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
