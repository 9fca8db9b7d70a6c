//! The calls that run over a connection: on whose behalf a server's requests are answered, and
//! where its reports go.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{Extensions, ProgressToken, RequestId};
use rmcp::service::{InboundStreamOrigin, RequestHandle};
use rockbot_core::CallContext;
use rockbot_core::context::CancellationToken;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::DropGuard;

/// Time limit for answering the requests of a server during one call, from the first request on.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Maximum number of requests for input of the user during one call.
const MAX_ELICITATIONS: u32 = 10;

/// A call of a tool, which may take several requests.
#[derive(Debug)]
pub(crate) struct RunningCall {
    pub(crate) cx: CallContext,
    elicitations: AtomicU32,
    samplings: AtomicU32,
    /// Fires when the call has ended or is cancelled: then nothing waits for an answer to a request.
    ended: CancellationToken,
    /// The number of requests of the server that are being answered.
    answering: watch::Sender<u32>,
    /// The end of the time for answering requests of the server.
    answer_by: OnceLock<Instant>,
}

/// The calls of a connection, by the requests that wait for an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunningCalls(Arc<Mutex<HashMap<RequestId, Entry>>>);

#[derive(Debug)]
struct Entry {
    token: ProgressToken,
    call: Arc<RunningCall>,
}

/// The registration of one request, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Registered {
    calls: RunningCalls,
    id: RequestId,
}

impl RunningCall {
    pub(crate) fn new(cx: &CallContext) -> Arc<Self> {
        Arc::new(Self {
            cx: cx.clone(),
            ended: cx.cancellation().child_token(),
            elicitations: AtomicU32::new(0),
            samplings: AtomicU32::new(0),
            answering: watch::Sender::new(0),
            answer_by: OnceLock::new(),
        })
    }

    /// Returns a guard whose drop ends the call.
    pub(crate) fn end_on_drop(&self) -> DropGuard {
        self.ended.clone().drop_guard()
    }

    /// Counts a request for input. Returns `false` if there were too many.
    pub(super) fn counts_elicitation(&self) -> bool {
        self.elicitations.fetch_add(1, Ordering::Relaxed) < MAX_ELICITATIONS
    }

    /// Counts a request for a model. Returns `false` if there were `max` before.
    pub(super) fn counts_sampling(&self, max: u32) -> bool {
        self.samplings.fetch_add(1, Ordering::Relaxed) < max
    }

    /// Waits for the answer to a request of the server, and returns `None` if the call ends before or
    /// [`PATIENCE`] is over.
    pub(super) async fn answering<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let answer_by = *self.answer_by.get_or_init(|| Instant::now() + PATIENCE);
        let _counted = Answering::begin(&self.answering);
        let answer = timeout_at(answer_by, self.ended.run_until_cancelled(answer));
        answer.await.ok().flatten()
    }

    /// Waits until the server has worked for `limit`. Time that the server waits for an answer does
    /// not count.
    pub(crate) async fn worked_for(&self, limit: Duration) {
        let mut left = limit;
        let mut answering = self.answering.subscribe();
        loop {
            let began = Instant::now();
            tokio::select! {
                () = sleep(left) => return,
                // The sender is part of this call.
                _ = answering.wait_for(|count| *count > 0) => left = left.saturating_sub(began.elapsed()),
            }
            let _ = answering.wait_for(|count| *count == 0).await;
        }
    }
}

/// The mark that a request is being answered, which ends when it is dropped.
struct Answering<'a>(&'a watch::Sender<u32>);

impl<'a> Answering<'a> {
    fn begin(count: &'a watch::Sender<u32>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl RunningCalls {
    /// Registers a request of a call.
    pub(crate) fn register(&self, handle: &RequestHandle<RoleClient>, call: &Arc<RunningCall>) -> Registered {
        let entry = Entry {
            token: handle.progress_token.clone(),
            call: call.clone(),
        };
        self.lock().insert(handle.id.clone(), entry);
        Registered {
            calls: self.clone(),
            id: handle.id.clone(),
        }
    }

    /// Returns `true` if no call waits for an answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns the call that a report of progress belongs to.
    pub(crate) fn of_token(&self, token: &ProgressToken) -> Option<Arc<RunningCall>> {
        let calls = self.lock();
        let found = calls.values().find(|entry| entry.token == *token);
        found.map(|entry| entry.call.clone())
    }

    /// Returns the call that a request of the server belongs to.
    ///
    /// Only HTTP tells it. Elsewhere it is the running call. If several calls run and they do not
    /// have the same principal and session, there is no answer, so a request is never shown to the
    /// user of another call.
    pub(crate) fn of_request(&self, extensions: &Extensions) -> Option<Arc<RunningCall>> {
        let calls = self.lock();
        match extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => calls.get(id).map(|entry| entry.call.clone()),
            Some(InboundStreamOrigin::Unassociated) | None => {
                let mut running = calls.values().map(|entry| &entry.call);
                let first = running.next()?;
                let user = |call: &RunningCall| (call.cx.principal().clone(), call.cx.session().clone());
                running.all(|call| user(call) == user(first)).then(|| first.clone())
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Entry>> {
        // An insertion either happened or did not, so a poisoned map is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.id);
    }
}
