//! The ledger of mutating calls: their beginnings and their ends.

use std::collections::{HashMap, VecDeque, hash_map};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rockbot_core::files::{FileError, FileHandle};
use rockbot_core::messaging::MessageEnvelope;
use rockbot_core::tool::{ToolInvokeRequest, ToolInvokeResponse};
use rockbot_core::{CallContext, Clock, Digest, Timestamp};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::log::{EffectLine, EffectLog, EffectLogError, Rewrite, Rewritten};

/// Maximum number of recorded calls. Beyond it the oldest calls that have ended are forgotten.
const MAX_CALLS: usize = 65_536;

/// Maximum length of a response that is kept, in bytes of JSON.
const MAX_RESPONSE: usize = 256 * 1024;

/// Maximum length of all kept responses together. Beyond it the responses of the oldest calls are
/// forgotten, but the ledger still knows that these calls have run.
const MAX_RESPONSES: usize = 16 * 1024 * 1024;

/// The reason why the outcome of a call is unknown that had begun when its process or its handler
/// ended.
const INTERRUPTED: &str = "the call was interrupted after it had begun";

/// Maximum time to wait for the end of the same call when the caller states no deadline.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The identity of a call: its sender, principal, idempotency key, tool and arguments.
///
/// The key alone would be the sender's claim about another sender's call, and two agents may
/// derive the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EffectKey(Digest);

impl EffectKey {
    /// Creates the identity of a call that arrived in `envelope`.
    pub(crate) fn of(envelope: &MessageEnvelope, request: &ToolInvokeRequest, cx: &CallContext) -> Self {
        let key = cx.idempotency_key(&request.tool_call_id);
        let principal = cx.principal().as_str();
        let tool = request.tool_name.as_str();
        Self(Digest::of([
            &*envelope.source,
            principal,
            &key,
            tool,
            &request.arguments,
        ]))
    }
}

/// A record of the mutating calls of the last hours, in memory and, with a log, on disk.
#[derive(Debug)]
pub(crate) struct EffectLedger {
    state: Arc<Mutex<LedgerState>>,
    clock: Arc<dyn Clock>,
    window: Duration,
}

#[derive(Debug, Default)]
struct LedgerState {
    calls: HashMap<Digest, RecordedCall>,
    /// The calls, ordered by their beginning, oldest first.
    order: VecDeque<Digest>,
    /// The calls whose responses are kept, oldest first.
    kept: VecDeque<Digest>,
    kept_bytes: usize,
    log: Option<EffectLog>,
}

#[derive(Debug)]
struct RecordedCall {
    at: Timestamp,
    stage: Stage,
}

/// The stage of a recorded call.
#[derive(Debug)]
enum Stage {
    /// It runs in this process. The channel ends with it.
    Running(watch::Sender<()>),
    /// It had begun when its process or its handler ended.
    Interrupted,
    /// It has ended, with this response as JSON if that is kept.
    Ended(Option<Arc<str>>),
}

/// The decision about a call that arrived.
pub(crate) enum Admission<'a> {
    /// The call is new and recorded: it may begin.
    New(EffectGuard<'a>),
    /// The call has run before, with this response.
    Ended(ToolInvokeResponse),
    /// The call must not run: it may have taken effect, for this reason.
    Unknown(&'static str),
    /// The call has not run, since it could not be recorded.
    Unrecorded(String),
}

/// The state of a recorded call, for a caller that asks after it.
pub(crate) enum Recorded {
    /// The call has ended with this response.
    Ended(ToolInvokeResponse),
    /// The call still runs.
    Running,
    /// The call may have taken effect, for this reason.
    Unknown(&'static str),
}

/// A guard of a call that runs. Dropped without [`EffectGuard::end`] it leaves a call with an
/// unknown outcome.
#[derive(Debug)]
pub(crate) struct EffectGuard<'a> {
    ledger: &'a EffectLedger,
    key: Digest,
    has_ended: bool,
}

impl EffectLedger {
    /// Creates a ledger that keeps calls for `window`, and reads the calls that an earlier process
    /// has left in `log`.
    ///
    /// # Errors
    ///
    /// Returns an error if the log cannot be read.
    pub(crate) fn new(log: Option<EffectLog>, window: Duration, clock: Arc<dyn Clock>) -> Result<Self, EffectLogError> {
        let mut state = LedgerState::default();
        if let Some(log) = &log {
            log.read(|line| state.restore(&line))?;
        }
        state.log = log;
        let now = clock.now();
        if state.expire(cutoff(now, window)) {
            state.compact();
        }
        Ok(Self {
            state: Arc::new(Mutex::new(state)),
            clock,
            window,
        })
    }

    /// Decides about a call, after waiting for the same call that runs.
    ///
    /// `is_repeated` states that the bus has delivered the message before. Without a record here it
    /// may have begun in another worker, so it does not begin again.
    pub(crate) async fn enter(&self, key: EffectKey, is_repeated: bool, deadline: Option<Instant>) -> Admission<'_> {
        let deadline = deadline.unwrap_or_else(|| Instant::now() + MAX_WAIT);
        loop {
            let mut running = match self.try_enter(key.0, is_repeated) {
                Ok(Entry::Decided(admission)) => return admission,
                Ok(Entry::Begun(guard, handle)) => return synced(guard, handle).await,
                Err(running) => running,
            };
            if timeout_at(deadline, running.changed()).await.is_err() {
                return Admission::Unknown("the same call is still running");
            }
        }
    }

    /// Returns the record of a call after waiting for the call's end; `None` if the call is not
    /// recorded. The call does not begin by this.
    pub(crate) async fn recall(&self, key: EffectKey, deadline: Option<Instant>) -> Option<Recorded> {
        let deadline = deadline.unwrap_or_else(|| Instant::now() + MAX_WAIT);
        loop {
            let mut running = match &self.lock().calls.get(&key.0)?.stage {
                Stage::Running(ended) => ended.subscribe(),
                Stage::Interrupted => return Some(Recorded::Unknown(INTERRUPTED)),
                Stage::Ended(response) => {
                    return Some(ended_with(response.as_deref()).map_or_else(Recorded::Unknown, Recorded::Ended));
                }
            };
            if timeout_at(deadline, running.changed()).await.is_err() {
                return Some(Recorded::Running);
            }
        }
    }

    /// Returns the time since `at` by the ledger's clock; none if it is yet to come.
    pub(crate) fn age(&self, at: Timestamp) -> Duration {
        Duration::from_millis(self.clock.now().as_millis().saturating_sub(at.as_millis()))
    }

    fn try_enter(&self, key: Digest, is_repeated: bool) -> Result<Entry<'_>, watch::Receiver<()>> {
        let now = self.clock.now();
        let mut state = self.lock();
        state.expire(cutoff(now, self.window));
        let decided = match state.calls.get(&key).map(|call| &call.stage) {
            Some(Stage::Running(ended)) => return Err(ended.subscribe()),
            Some(Stage::Interrupted) => Admission::Unknown(INTERRUPTED),
            Some(Stage::Ended(response)) => {
                ended_with(response.as_deref()).map_or_else(Admission::Unknown, Admission::Ended)
            }
            None if is_repeated => {
                Admission::Unknown("the call was delivered before, and this worker does not know what became of it")
            }
            None => return Ok(self.begin(&mut state, key, now)),
        };
        Ok(Entry::Decided(decided))
    }

    /// Records that a call begins, before it does.
    fn begin(&self, state: &mut LedgerState, key: Digest, now: Timestamp) -> Entry<'_> {
        let handle = match state.append(&EffectLine::began(key, now)) {
            Ok(handle) => handle,
            Err(error) => return Entry::Decided(Admission::Unrecorded(error.to_string())),
        };
        let stage = Stage::Running(watch::Sender::new(()));
        state.calls.insert(key, RecordedCall { at: now, stage });
        state.order.push_back(key);
        let guard = EffectGuard {
            ledger: self,
            key,
            has_ended: false,
        };
        Entry::Begun(guard, handle)
    }

    /// Writes the file anew if it has grown large. A blocking thread does it, without the lock but
    /// for the last step, so that other calls begin and end meanwhile.
    async fn compact(&self) {
        let Some((rewrite, kept)) = self.lock().begin_compaction() else {
            return;
        };
        let state = Arc::clone(&self.state);
        let compacting = tokio::task::spawn_blocking(move || {
            let written = rewrite.write(kept.iter().map(KeptCall::line));
            lock(&state).finish_compaction(written);
        });
        if let Err(error) = compacting.await {
            tracing::debug!(%error, "the host stops before the record of effects is shortened");
        }
    }

    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<LedgerState>) -> MutexGuard<'_, LedgerState> {
    // No code that can panic runs between two changes that belong together.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first result of an attempt to enter.
enum Entry<'a> {
    Decided(Admission<'a>),
    Begun(EffectGuard<'a>, Option<FileHandle>),
}

/// Waits until the record of a call is on the disk, if it must be.
async fn synced(guard: EffectGuard<'_>, handle: Option<FileHandle>) -> Admission<'_> {
    let Some(handle) = handle else {
        return Admission::New(guard);
    };
    match tokio::task::spawn_blocking(move || handle.sync()).await {
        Ok(Ok(())) => Admission::New(guard),
        Ok(Err(error)) => Admission::Unrecorded(error.to_string()),
        Err(_) => Admission::Unknown("the host stops"),
    }
}

/// Returns the response of a call that has ended, or the reason why it is unknown.
fn ended_with(response: Option<&str>) -> Result<ToolInvokeResponse, &'static str> {
    match response.map(serde_json::from_str) {
        Some(Ok(response)) => Ok(response),
        _ => Err("the call has run, and its result is not kept any more"),
    }
}

fn cutoff(now: Timestamp, window: Duration) -> Timestamp {
    let window = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(window))
}

impl EffectGuard<'_> {
    /// Records the response of the call, which a repetition of the call gets, too. The call that
    /// makes the file large waits until it is shortened.
    pub(crate) async fn end(mut self, response: &ToolInvokeResponse) {
        self.record(response);
        self.ledger.compact().await;
    }

    fn record(&mut self, response: &ToolInvokeResponse) {
        self.has_ended = true;
        let text = serde_json::to_string(response).ok();
        let text = text.filter(|text| text.len() <= MAX_RESPONSE);
        let mut state = self.ledger.lock();
        let Some(call) = state.calls.get(&self.key) else { return };
        let line = EffectLine::ended(self.key, call.at, text.as_deref());
        if let Err(error) = state.append(&line) {
            tracing::warn!(%error, "the end of a tool call cannot be recorded; after a restart its outcome is unknown");
        }
        state.keep(self.key, text.map(Arc::from));
    }
}

impl Drop for EffectGuard<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if let Some(call) = self.ledger.lock().calls.get_mut(&self.key) {
            call.stage = Stage::Interrupted;
        }
    }
}

impl LedgerState {
    /// Takes over a record of an earlier process.
    fn restore(&mut self, line: &EffectLine) {
        let at = Timestamp::from_millis(line.at);
        if let hash_map::Entry::Vacant(free) = self.calls.entry(line.key) {
            let stage = Stage::Interrupted;
            free.insert(RecordedCall { at, stage });
            self.order.push_back(line.key);
        }
        if line.ended {
            self.keep(line.key, line.response.as_ref().map(|response| response.get().into()));
        }
    }

    /// Keeps the response of a call that has ended, within the bounds.
    fn keep(&mut self, key: Digest, response: Option<Arc<str>>) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        if let Some(response) = &response {
            self.kept_bytes += response.len();
            self.kept.push_back(key);
        }
        call.stage = Stage::Ended(response);
        while self.kept_bytes > MAX_RESPONSES
            && let Some(oldest) = self.kept.pop_front()
        {
            self.forget_response(oldest);
        }
    }

    fn forget_response(&mut self, key: Digest) {
        let call = self.calls.get_mut(&key);
        if let Some(Stage::Ended(response)) = call.map(|call| &mut call.stage) {
            let freed = response.take().map_or(0, |response| response.len());
            self.kept_bytes = self.kept_bytes.saturating_sub(freed);
        }
    }

    /// Forgets calls that began before `cutoff`, and the oldest calls beyond the maximum. Returns
    /// `true` if there were any.
    fn expire(&mut self, cutoff: Timestamp) -> bool {
        let before = self.calls.len();
        while let Some(oldest) = self.order.front().copied() {
            let call = self.calls.get(&oldest);
            let is_running = call.is_some_and(|call| matches!(call.stage, Stage::Running(_)));
            let is_old = call.is_none_or(|call| call.at < cutoff) || self.calls.len() > MAX_CALLS;
            // Calls begin in this order, so the calls behind a running call wait for their turn;
            // the running call ends by its time limit.
            if is_running || !is_old {
                break;
            }
            self.order.pop_front();
            self.forget_response(oldest);
            self.calls.remove(&oldest);
        }
        while self.kept.front().is_some_and(|key| !self.calls.contains_key(key)) {
            self.kept.pop_front();
        }
        self.calls.len() < before
    }

    fn append(&mut self, line: &EffectLine) -> Result<Option<FileHandle>, FileError> {
        self.log.as_mut().map_or(Ok(None), |log| log.append(line))
    }

    /// Writes the file anew, with the calls that still count. Blocks.
    fn compact(&mut self) {
        let kept = self.kept_calls();
        let Some(log) = &mut self.log else { return };
        report(log.rewrite(kept.iter().map(KeptCall::line)));
    }

    /// Begins to write the file anew if it has grown large. Returns the calls that it is to
    /// contain.
    fn begin_compaction(&mut self) -> Option<(Rewrite, Vec<KeptCall>)> {
        let rewrite = self.log.as_mut()?.begin_rewrite()?;
        Some((rewrite, self.kept_calls()))
    }

    fn finish_compaction(&mut self, written: Result<Rewritten, FileError>) {
        if let Some(log) = &mut self.log {
            report(log.finish_rewrite(written));
        }
    }

    /// Returns the calls that still count, oldest first.
    fn kept_calls(&self) -> Vec<KeptCall> {
        let kept = self.order.iter().filter_map(|key| {
            let call = self.calls.get(key)?;
            let (ended, response) = match &call.stage {
                Stage::Running(_) | Stage::Interrupted => (false, None),
                Stage::Ended(response) => (true, response.clone()),
            };
            Some(KeptCall {
                key: *key,
                at: call.at,
                ended,
                response,
            })
        });
        kept.collect()
    }
}

/// A call as the file is to have it.
struct KeptCall {
    key: Digest,
    at: Timestamp,
    ended: bool,
    response: Option<Arc<str>>,
}

impl KeptCall {
    fn line(&self) -> EffectLine {
        if self.ended {
            EffectLine::ended(self.key, self.at, self.response.as_deref())
        } else {
            EffectLine::began(self.key, self.at)
        }
    }
}

fn report(shortened: Result<(), FileError>) {
    if let Err(error) = shortened {
        tracing::warn!(%error, "the record of effects cannot be shortened; it keeps growing until it can");
    }
}
