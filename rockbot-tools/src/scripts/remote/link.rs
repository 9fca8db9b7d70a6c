//! The connection to the scripts managers on a bus.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::messaging::{
    Bus, BusError, ErrorReply, Message, MessageEnvelope, RequestClient, RequestError, headers,
};
use rockbot_core::{AgentIdentity, CallContext, IdSource as _, RandomIds};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::super::guarantees::Guarantees;
use super::super::runner::Script;
use super::super::wire::{
    ScriptCancelled, ScriptGuaranteesRequest, ScriptGuaranteesResponse, ScriptInvokeRequest, ScriptInvokeResponse,
};

/// Maximum number of cancellations that wait to be published. Beyond it a cancellation is dropped,
/// and its script runs to its end.
const MAX_CANCELLED: usize = 256;

/// Maximum time to wait for an answer, whatever a script asks for.
const MAX_WAIT: Duration = Duration::from_secs(3_600);

/// Time between two questions for guarantees, until a manager has declared some.
const ASK_AGAIN: Duration = Duration::from_secs(15);

/// Maximum time to wait for the guarantees of a manager.
const ASK_TIME: Duration = Duration::from_secs(3);

/// The connection to the scripts managers on a bus.
#[derive(Debug)]
pub(super) struct Link {
    bus: Arc<dyn Bus>,
    source: Arc<str>,
    /// Requests to run scripts. Answers come to `script.result.{agent}`.
    runs: RequestClient,
    /// Questions for guarantees, which several managers answer.
    questions: RequestClient,
    /// Takes the ids of requests whose answers are no longer awaited.
    cancelled: mpsc::Sender<String>,
    /// `None` until a manager has declared its guarantees.
    declared: Mutex<Option<Guarantees>>,
    /// Answers to open requests that name another run.
    misplaced: Arc<AtomicU64>,
}

/// A request that was sent. Dropped before its answer, it reports that the answer is no longer
/// awaited.
struct SentScript<'a> {
    cancelled: &'a mpsc::Sender<String>,
    id: Option<String>,
}

impl Drop for SentScript<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            // A full channel loses the report: the script then runs to its end.
            let _ = self.cancelled.try_send(id);
        }
    }
}

impl Link {
    /// Creates the connection, and the channel of its cancellations for [`run`](Self::run).
    pub(super) fn new(bus: Arc<dyn Bus>, identity: &AgentIdentity) -> (Self, mpsc::Receiver<String>) {
        let (cancelled, receiver) = mpsc::channel(MAX_CANCELLED);
        let source = identity.name().clone();
        let topic = format!("script.result.{source}");
        // Two processes of one agent each get all answers, and ignore those of the other.
        let subscription = format!("{topic}.{}", identity.instance_id());
        let runs = RequestClient::new(bus.clone(), source.clone())
            .with_reply_topic(topic)
            .with_reply_subscription(subscription)
            .with_time_limit(MAX_WAIT);
        let link = Self {
            questions: RequestClient::new(bus.clone(), source.clone()).with_time_limit(ASK_TIME),
            bus,
            source,
            runs,
            cancelled,
            declared: Mutex::default(),
            misplaced: Arc::default(),
        };
        (link, receiver)
    }

    /// Returns the guarantees that a manager declared last.
    pub(super) fn guarantees(&self) -> Guarantees {
        self.declared().unwrap_or(Guarantees::NONE)
    }

    /// Returns the guarantees that a manager declared last. If none has, the managers are asked.
    pub(super) async fn asked_guarantees(&self) -> Guarantees {
        if self.declared().is_none() {
            self.ask_for_guarantees().await;
        }
        self.guarantees()
    }

    /// Returns the number of answers that were ignored: late, double and forged ones.
    pub(super) fn ignored(&self) -> u64 {
        self.runs.stray_replies() + self.misplaced.load(Ordering::Relaxed)
    }

    /// Asks a manager to run a script, and waits up to `limit` for its answer.
    pub(super) async fn ask(
        &self,
        script: &Script,
        limit: Duration,
        cx: &CallContext,
    ) -> Result<ScriptInvokeResponse, RequestError> {
        let id = RandomIds.next_id();
        let request = ScriptInvokeRequest::new(&*id, script, self.guarantees());
        let topic = ScriptInvokeRequest::TOPIC.unwrap_or_default();
        let question = MessageEnvelope::of(&request)?
            .with_context(cx)
            .with_header(headers::TIMEOUT_MS, limit.as_millis().to_string());
        let mut sent = SentScript {
            cancelled: &self.cancelled,
            id: Some(id.clone()),
        };
        let misplaced = self.misplaced.clone();
        // Cancel point: dropping the request reports it as cancelled.
        let asking = self.runs.call_until(topic, question, move |answer| {
            let is_answer = is_answer_to(&id, answer);
            misplaced.fetch_add(u64::from(!is_answer), Ordering::Relaxed);
            is_answer
        });
        let answer = asking.await;
        if !may_run(&answer) {
            sent.id = None;
        }
        let answer: ScriptInvokeResponse = answer?.payload()?;
        self.declare(answer.guarantees, &request);
        Ok(answer)
    }

    /// Publishes cancellations, and asks for guarantees until a manager declares some.
    pub(super) async fn run(self: Arc<Self>, mut cancelled: mpsc::Receiver<String>, stop: CancellationToken) {
        let mut ticks = interval(ASK_AGAIN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reported = 0;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(id) = cancelled.recv() => {
                    stop.run_until_cancelled(self.call_off(id)).await;
                }
                _ = ticks.tick() => {
                    stop.run_until_cancelled(self.asked_guarantees()).await;
                    reported = self.report_ignored(reported);
                }
            }
        }
    }

    fn declared(&self) -> Option<Guarantees> {
        *self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the guarantees of the manager that answered `request`.
    fn declare(&self, guarantees: Guarantees, request: &ScriptInvokeRequest) {
        if !guarantees.include(request.required_guarantees) {
            tracing::warn!(required = %request.required_guarantees, declared = %guarantees, "a scripts manager guarantees less than another on this bus; scripts now need an endorsement where they read untrusted text");
        }
        *self.declared.lock().unwrap_or_else(PoisonError::into_inner) = Some(guarantees);
    }

    async fn ask_for_guarantees(&self) {
        let topic = ScriptGuaranteesRequest::TOPIC.unwrap_or_default();
        let question = ScriptGuaranteesRequest::default();
        match self.questions.request(topic, &question).await {
            Ok(ScriptGuaranteesResponse { guarantees }) => {
                let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
                // The answer to a script that came meanwhile is newer.
                declared.get_or_insert(guarantees);
            }
            Err(error) => tracing::debug!(%error, "no scripts manager has declared its guarantees yet"),
        }
    }

    async fn call_off(&self, id: String) {
        let topic = ScriptCancelled::TOPIC.unwrap_or_default();
        let published = async {
            let envelope = MessageEnvelope::of(&ScriptCancelled::new(id))?.with_source(self.source.clone());
            self.bus.publish(topic, Arc::new(envelope)).await
        };
        let published: Result<_, BusError> = published.await;
        if let Err(error) = published {
            tracing::warn!(%error, "a scripts manager could not be told that a script is cancelled; it runs to its end");
        }
    }

    /// Logs the number of ignored answers if it has grown. Returns the number.
    fn report_ignored(&self, reported: u64) -> u64 {
        let ignored = self.ignored();
        if ignored > reported {
            tracing::warn!(
                ignored,
                "answers about scripts were ignored: they came late or twice, or were forged"
            );
        }
        ignored
    }
}

/// Returns `true` if a manager may still run the script, whose answer is no longer awaited.
fn may_run<T>(answer: &Result<T, RequestError>) -> bool {
    matches!(
        answer,
        Err(RequestError::TimedOut { .. } | RequestError::Bus(BusError::Provider { .. }))
    )
}

/// Returns `true` if a message with the correlation of the request `id` is its answer. A message
/// that cannot be read is one, too: the call then ends with an error.
fn is_answer_to(id: &str, answer: &MessageEnvelope) -> bool {
    answer.message_type == ErrorReply::TYPE
        || answer
            .payload::<ScriptInvokeResponse>()
            .map_or(true, |answer| answer.tool_call_id == id)
}
