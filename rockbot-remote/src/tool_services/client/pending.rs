//! The calls that wait for their reply, and the parts of it that have arrived.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::context::ProgressReporter;
use rockbot_core::messaging::{BusError, Delivery, DeliveryHandler, Disposition};
use rockbot_core::support::deadline_after;
use tokio::sync::Notify;
use tokio::time::{self, Instant};

use super::CallLimits;
use crate::tool_services::wire::{ATTEMPT, ID, Reply};

/// An error of a call.
#[derive(Debug, thiserror::Error)]
pub(in crate::tool_services) enum CallError {
    /// No service listens to the queue.
    #[error("no service takes requests there; start it")]
    NoService,
    /// No reply, or no further part of it, arrived in time.
    #[error("it did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The service reported an error: its kind and its message.
    #[error("{}", described(kind, message))]
    Failed { kind: String, message: String },
    /// The reply is no JSON object.
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
    /// The result has more bytes than the limit.
    #[error("its answer is longer than {0} bytes")]
    TooLong(usize),
    /// The bus refused the request, failed or was closed.
    #[error(transparent)]
    Bus(#[from] BusError),
}

fn described(kind: &str, message: &str) -> String {
    match (kind, message) {
        ("", "") => "it gives no reason".to_owned(),
        (kind, "") => kind.to_owned(),
        ("" | crate::tool_services::wire::SERVICE_ERROR, message) => message.to_owned(),
        (kind, message) => format!("{kind}: {message}"),
    }
}

/// The calls that wait, by their `id`.
#[derive(Debug, Default)]
pub(super) struct PendingCalls(Mutex<HashMap<String, Arc<PendingCall>>>);

/// A call that waits for its reply.
#[derive(Debug)]
struct PendingCall {
    collected: Mutex<Collected>,
    /// Notified of each message.
    arrived: Notify,
    progress: ProgressReporter,
    max_bytes: usize,
}

/// The part of a reply that has arrived.
#[derive(Debug, Default)]
struct Collected {
    text: String,
    /// The delivery of the request that the text belongs to.
    attempt: u32,
    /// The end of the call; later messages change nothing.
    result: Option<Result<String, CallError>>,
}

impl PendingCalls {
    /// Adds a call. It is removed when the returned guard is dropped.
    pub(super) fn enter(pending: &Arc<Self>, id: &str, progress: ProgressReporter, limits: CallLimits) -> CallGuard {
        let call = Arc::new(PendingCall {
            collected: Mutex::default(),
            arrived: Notify::new(),
            progress,
            max_bytes: limits.max_bytes,
        });
        pending.lock().insert(id.to_owned(), Arc::clone(&call));
        CallGuard {
            pending: Arc::clone(pending),
            id: id.to_owned(),
            call,
            limits,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<PendingCall>>> {
        // No code that can panic runs under the lock, so a poisoned map is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingCall {
    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a message of the reply.
    fn take(&self, body: &[u8], attempt: u32) {
        let part = self.lock().take(body, attempt, self.max_bytes);
        self.arrived.notify_one();
        // The listener is the program's code, so it runs outside the lock.
        if let Some(part) = part {
            self.progress.report(part);
        }
    }

    fn end(&self, error: CallError) {
        self.lock().result.get_or_insert(Err(error));
        self.arrived.notify_one();
    }
}

impl Collected {
    /// Takes in a message, and returns the part to report: a part that is not the last.
    fn take(&mut self, body: &[u8], attempt: u32, max_bytes: usize) -> Option<String> {
        if self.result.is_some() || attempt < self.attempt {
            return None;
        }
        if attempt > self.attempt {
            // The service runs the request again, and sends its parts from the first on.
            self.text.clear();
            self.attempt = attempt;
        }
        match Reply::parse(body) {
            None => self.result = Some(Err(CallError::Unreadable("it is no JSON object".to_owned()))),
            Some(Reply::Failed { kind, message }) => self.result = Some(Err(CallError::Failed { kind, message })),
            Some(Reply::Part { text, .. }) if self.text.len().saturating_add(text.len()) > max_bytes => {
                self.result = Some(Err(CallError::TooLong(max_bytes)));
            }
            Some(Reply::Part { text, is_last: false }) => {
                self.text.push_str(&text);
                return (!text.is_empty()).then_some(text);
            }
            Some(Reply::Part { text, is_last: true }) => {
                self.text.push_str(&text);
                self.result = Some(Ok(std::mem::take(&mut self.text)));
            }
        }
        None
    }
}

/// A call that was entered. Dropping it removes the call.
pub(super) struct CallGuard {
    pending: Arc<PendingCalls>,
    id: String,
    call: Arc<PendingCall>,
    limits: CallLimits,
}

impl CallGuard {
    /// Waits for the end of the call.
    pub(super) async fn result(self) -> Result<String, CallError> {
        let end = deadline_after(Instant::now(), self.limits.total_time);
        loop {
            let next = deadline_after(Instant::now(), self.limits.message_time);
            let arrived = time::timeout_at(next.min(end), self.call.arrived.notified()).await;
            if let Some(result) = self.call.lock().result.take() {
                return result;
            }
            if arrived.is_err() {
                let total = self.limits.total_time;
                let message = self.limits.message_time;
                return Err(CallError::TimedOut(if next < end { message } else { total }));
            }
        }
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.pending.lock().remove(&self.id);
    }
}

/// The handler of a reply queue. When the bus ends the subscription it drops this, which ends all
/// waiting calls.
pub(super) struct Replies(pub(super) Arc<PendingCalls>);

#[async_trait]
impl DeliveryHandler for Replies {
    async fn handle(&self, delivery: Delivery) -> Disposition {
        // Replies to other clients, late ones and repeated ones find no call, and are dropped.
        let headers = &delivery.envelope.headers;
        let id = headers.get(ID);
        let call = id.and_then(|id| self.0.lock().get(id).cloned());
        if let Some(call) = call {
            let attempt = headers.get(ATTEMPT).and_then(|attempt| attempt.parse().ok());
            call.take(&delivery.envelope.body, attempt.unwrap_or(1));
        }
        Disposition::Ack
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        for (_, call) in std::mem::take(&mut *self.0.lock()) {
            call.end(CallError::Bus(BusError::Closed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Collected;

    const PART: &[u8] = br#"{"response": "a", "end_of_stream": false}"#;
    const LAST: &[u8] = br#"{"response": "b", "end_of_stream": true}"#;

    #[test]
    fn parts_of_a_later_delivery_replace_those_of_an_earlier_one() {
        let mut collected = Collected::default();
        for (body, attempt) in [(PART, 1), (PART, 1), (PART, 2), (PART, 1), (LAST, 2)] {
            collected.take(body, attempt, 100);
        }
        assert!(matches!(collected.result, Some(Ok(text)) if text == "ab"));
    }
}
