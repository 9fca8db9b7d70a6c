//! The shared state of one turn that this process works on, or that is parked here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rockbot_core::content::Content;
use rockbot_core::turn::{
    ApprovalRequest, JournalError, OutputValidator, ProgressSink, TierDecision, TurnFeed, TurnOutcome, TurnProgress,
    TurnRequest, TurnStatus,
};
use rockbot_core::{BoxError, TraceContext, TurnId};
use tokio::sync::{Notify, SetOnce};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::backlog::PermitSlot;
use super::{BacklogPermit, Mailbox, TurnState};
use crate::turn::CancelReason;

/// Maximum time that a reply waits for the progress reports before it: it matters more than its
/// order.
const REPORTS_TIME_LIMIT: Duration = Duration::from_secs(5);

/// The handle of a turn for observing and influencing it while it is live.
///
/// The task that runs the turn publishes its state here. Callers wait for it, other messages join
/// it, and a cancellation reaches the task through it. The turn itself, its journal claim and its
/// conversation stay with the task.
/// A weak reference to a turn that nothing else holds keeps a few bytes, since the parts are boxed.
#[derive(Debug)]
pub(crate) struct LiveTurn(Box<Parts>);

/// The parts of a live turn.
#[derive(Debug)]
struct Parts {
    id: TurnId,
    request: Arc<TurnRequest>,
    /// The sink of the caller and the feed.
    progress: ProgressSink,
    /// `true` if the caller reads the reports.
    has_listener: bool,
    /// The reports of the turn for readers, in a turn with a listener.
    feed: Option<TurnFeed>,
    /// Fires when the progress reports have been sent. The reply follows them.
    reports: Option<CancellationToken>,
    /// The decision of the tier selector, if this process asked it.
    tier_decision: OnceLock<TierDecision>,
    /// The position of its latest span in a trace.
    trace: Mutex<Option<TraceContext>>,
    /// The content that guardrails put in place of the user's.
    replaced_input: OnceLock<Content>,
    /// The output validators of the request alone.
    validators: OnceLock<Vec<Arc<dyn OutputValidator>>>,
    /// The listener and the validators that the turn layers passed on in place of the caller's.
    layered: OnceLock<(ProgressSink, Vec<Arc<dyn OutputValidator>>)>,
    cancellation: CancellationToken,
    cancel_reason: OnceLock<CancelReason>,
    /// Set once the cancellation is in the journal.
    cancel_recorded: SetOnce<()>,
    /// Number of callers that wait for the turn.
    callers: AtomicUsize,
    mailbox: Mailbox,
    /// The place of the message in the host's backlog, while the turn works or waits for its session.
    permit: PermitSlot,
    /// The error of a turn layer, or of a journal that took no end, until a caller takes it.
    error: Mutex<Option<BoxError>>,
    /// The passing error of the journal that interrupted the work, until the turn is left
    /// unfinished.
    interruption: Mutex<Option<JournalError>>,
    /// The turns whose results joined this turn.
    results: OnceLock<Vec<TurnId>>,
    /// The outcome that the turn will end with, for the messages that joined it: their turns end first.
    announced: SetOnce<Arc<TurnOutcome>>,
    /// The state, and the notification of its changes: a `watch` channel would take 400 bytes more.
    state: Mutex<TurnState>,
    changed: Notify,
}

impl LiveTurn {
    /// Creates a live turn that this process did not accept: a resumed turn, or a parked turn. If
    /// it is the turn of `asked`, whose message came again, it has the listener and the validators
    /// of that caller.
    pub(crate) fn resumed(request: Arc<TurnRequest>, asked: Option<&Self>) -> Arc<Self> {
        let id = request.turn_id();
        let asked = asked.filter(|asked| asked.0.id == id);
        let (progress, feed) = asked.map_or_else(Default::default, |asked| {
            (asked.0.progress.clone(), asked.0.feed.clone())
        });
        // A person who left may come back to it.
        let listener = (progress, feed.or_else(|| Some(TurnFeed::new())));
        let live = Self::accepted(id, request, listener, None);
        live.set_validators(asked.map(|asked| asked.validators().to_vec()).unwrap_or_default());
        live
    }

    /// Creates the live turn of a turn that is parked with `outcome` and that nothing held.
    pub(super) fn parked(id: TurnId, request: TurnRequest, outcome: TurnOutcome, feed: Option<TurnFeed>) -> Arc<Self> {
        let live = Self::accepted(id, Arc::new(request), (ProgressSink::none(), feed), None);
        live.0.mailbox.close();
        *live.lock_state() = TurnState::Parked(Arc::new(outcome));
        live
    }

    /// Creates a live turn with the listener of its caller and the feed that readers have already. A
    /// turn with either has a feed. Its reply waits for `reports`.
    pub(crate) fn accepted(
        id: TurnId,
        request: Arc<TurnRequest>,
        (progress, feed): (ProgressSink, Option<TurnFeed>),
        reports: Option<CancellationToken>,
    ) -> Arc<Self> {
        let has_listener = progress.is_open();
        let feed = feed.or_else(|| has_listener.then(TurnFeed::new));
        let progress = match &feed {
            Some(feed) => feed.with_sink(progress),
            None => progress,
        };
        Arc::new(Self(Box::new(Parts {
            id,
            request,
            progress,
            has_listener,
            feed,
            reports,
            tier_decision: OnceLock::new(),
            trace: Mutex::default(),
            replaced_input: OnceLock::new(),
            validators: OnceLock::new(),
            layered: OnceLock::new(),
            cancellation: CancellationToken::new(),
            cancel_reason: OnceLock::new(),
            cancel_recorded: SetOnce::new(),
            callers: AtomicUsize::new(0),
            mailbox: Mailbox::default(),
            permit: PermitSlot::default(),
            error: Mutex::default(),
            interruption: Mutex::default(),
            results: OnceLock::new(),
            announced: SetOnce::new(),
            state: Mutex::default(),
            changed: Notify::new(),
        })))
    }

    /// Returns the id of the turn.
    pub(crate) fn id(&self) -> &TurnId {
        &self.0.id
    }

    /// Returns the message that the turn answers.
    pub(crate) fn request(&self) -> &Arc<TurnRequest> {
        &self.0.request
    }

    /// Returns the feed of the turn's reports; `None` in a turn without a listener.
    pub(crate) fn feed(&self) -> Option<&TurnFeed> {
        self.0.feed.as_ref()
    }

    /// Returns the sink for the turn's progress reports.
    pub(crate) fn progress(&self) -> &ProgressSink {
        self.0.layered.get().map_or(&self.0.progress, |(progress, _)| progress)
    }

    /// Sets the listener and the validators that the turn layers passed on. The first values count.
    /// The listener gets every report but the end, which the caller's sink gets.
    pub(crate) fn set_layered(&self, progress: ProgressSink, validators: Vec<Arc<dyn OutputValidator>>) {
        let _ = self.0.layered.set((progress, validators));
    }

    /// Waits until the progress reports have been sent, but at most five seconds.
    pub(crate) async fn reports_sent(&self) {
        if let Some(reports) = &self.0.reports {
            let _ = timeout(REPORTS_TIME_LIMIT, reports.cancelled()).await;
        }
    }

    /// Records the decision of the tier selector.
    pub(crate) fn set_tier_decision(&self, decision: Option<TierDecision>) {
        if let Some(decision) = decision {
            // A turn is accepted once, so the cell is still empty.
            let _ = self.0.tier_decision.set(decision);
        }
    }

    /// Returns the decision of the tier selector, if this process asked it.
    pub(crate) fn tier_decision(&self) -> Option<&TierDecision> {
        self.0.tier_decision.get()
    }

    /// Sets the position in a trace of the work that begins.
    pub(crate) fn set_trace(&self, trace: TraceContext) {
        *self.0.trace.lock().unwrap_or_else(PoisonError::into_inner) = Some(trace);
    }

    /// Returns the position in a trace of the latest work on the turn.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.0.trace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the content of the user's message. The first replacement counts.
    pub(crate) fn replace_input(&self, content: Content) {
        let _ = self.0.replaced_input.set(content);
    }

    /// Returns the content of the user's message, as guardrails left it.
    pub(crate) fn input(&self) -> &Content {
        self.0.replaced_input.get().unwrap_or(&self.0.request.content)
    }

    /// Sets the output validators of the request.
    pub(crate) fn set_validators(&self, validators: Vec<Arc<dyn OutputValidator>>) {
        // A turn is accepted once, so the cell is still empty.
        let _ = self.0.validators.set(validators);
    }

    /// Returns the output validators of the request. They are in no journal: a turn that was
    /// resumed has the validators of the caller whose message came again, if any.
    pub(crate) fn validators(&self) -> &[Arc<dyn OutputValidator>] {
        let layered = self.0.layered.get().map(|(_, validators)| validators);
        layered
            .or(self.0.validators.get())
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Returns the number of callers that wait for the turn.
    pub(crate) fn callers(&self) -> &AtomicUsize {
        &self.0.callers
    }

    /// Sets the turns whose results joined this turn.
    pub(crate) fn set_results(&self, results: Vec<TurnId>) {
        if !results.is_empty() {
            // A turn ends once here, or again with the same turns.
            let _ = self.0.results.set(results);
        }
    }

    /// Returns the turns whose results joined this turn.
    pub(crate) fn results(&self) -> &[TurnId] {
        self.0.results.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns `true` if a caller waits for the turn or reads its reports, or its reply goes to a
    /// topic.
    pub(crate) fn is_watched(&self) -> bool {
        self.0.has_listener || self.0.request.reply_to.is_some() || self.0.callers.load(Ordering::Relaxed) > 0
    }

    /// Returns the token that fires when the turn is cancelled.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// Returns the reason of the cancellation.
    pub(crate) fn cancel_reason(&self) -> CancelReason {
        self.0.cancel_reason.get().copied().unwrap_or(CancelReason::Caller)
    }

    /// Cancels the turn. The first reason counts.
    pub(crate) fn cancel(&self, reason: CancelReason) {
        // The reason is set before the token fires, so a task that sees the cancellation also sees its
        // reason.
        let _ = self.0.cancel_reason.set(reason);
        self.0.cancellation.cancel();
    }

    /// Notes that the cancellation is in the journal.
    pub(crate) fn set_cancellation_recorded(&self) {
        // Recorded once: a turn that was cancelled ends.
        let _ = self.0.cancel_recorded.set(());
    }

    /// Waits until the cancellation is in the journal.
    pub(crate) async fn cancellation_recorded(&self) {
        self.0.cancel_recorded.wait().await;
    }

    /// Returns the queue of messages that are to join the turn.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.0.mailbox
    }

    /// Sets the place of the message in the host's backlog; `None` gives it back.
    pub(crate) fn set_permit(&self, permit: Option<BacklogPermit>) {
        self.0.permit.set(permit);
    }

    /// Makes a turn that was parked accept messages again, and publishes that it works.
    pub(crate) fn reopen(&self) {
        self.0.mailbox.reopen();
        self.publish(TurnState::Working);
    }

    /// Cancels the turn of a caller that left while it worked. A parked turn is left alone: it
    /// belongs to the person who decides.
    pub(crate) fn caller_left(&self) {
        // The lock makes the check and the cancellation one step: `suspend` takes the same lock, so a
        // turn cannot be parked in between and lose the cancellation.
        let state = self.lock_state();
        if matches!(*state, TurnState::Working) {
            self.cancel(CancelReason::Caller);
        }
    }

    /// Publishes a new state to the callers that wait.
    pub(crate) fn publish(&self, state: TurnState) {
        if let TurnState::Ended(outcome) = &state {
            self.0.progress.send(|| TurnProgress::Final((**outcome).clone()));
        }
        if self.lock_state().advance(state) {
            self.0.changed.notify_waiters();
        }
    }

    /// Publishes `Parked` or `Halted`, unless the turn was cancelled. Returns `false` if it was: then
    /// the turn has to end instead.
    pub(crate) fn suspend(&self, state: TurnState) -> bool {
        let mut current = self.lock_state();
        // Checked under the lock: a cancellation that comes later finds the suspended state, and the
        // code that cancels a suspended turn ends it through the journal.
        if self.0.cancellation.is_cancelled() {
            return false;
        }
        let is_changed = current.advance(state);
        drop(current);
        if is_changed {
            self.0.changed.notify_waiters();
        }
        true
    }

    /// Keeps the error of a turn layer, or of the journal, for the first caller that asks for the end
    /// of the turn. It cannot be copied, so the others get the outcome alone.
    pub(crate) fn set_error(&self, error: BoxError) {
        *self.error() = Some(error);
    }

    /// Takes the error of a turn layer, or of the journal, if one failed and no caller has it yet.
    pub(crate) fn take_error(&self) -> Option<BoxError> {
        self.error().take()
    }

    fn error(&self) -> MutexGuard<'_, Option<BoxError>> {
        // No code that can panic runs under the lock.
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the passing error of the journal that interrupted the work.
    pub(crate) fn set_interruption(&self, error: JournalError) {
        *self.0.interruption.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Takes the passing error of the journal that interrupted the work, if there is one.
    pub(crate) fn take_interruption(&self) -> Option<JournalError> {
        self.0
            .interruption
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Announces the outcome to the turns of messages that joined this turn. The first outcome
    /// counts.
    pub(crate) fn announce_outcome(&self, outcome: &Arc<TurnOutcome>) {
        let _ = self.0.announced.set(outcome.clone());
    }

    /// Waits for the announced outcome. Returns `None` when the turn stops here without an outcome.
    pub(crate) async fn announced_outcome(&self) -> Option<Arc<TurnOutcome>> {
        tokio::select! {
            // In order: the outcome is announced before the end is published, so both may be ready at once.
            biased;
            outcome = self.0.announced.wait() => Some(outcome.clone()),
            _ = self.ended() => None,
        }
    }

    /// Waits for a state other than [`TurnState::Working`] and returns it.
    pub(crate) async fn settled(&self) -> TurnState {
        self.wait(|state| !matches!(state, TurnState::Working)).await
    }

    /// Waits for the end of the turn, which may come long after it was parked, or for the host to stop.
    pub(crate) async fn ended(&self) -> TurnState {
        self.wait(|state| matches!(state, TurnState::Ended(_) | TurnState::Halted))
            .await
    }

    /// Returns `true` while the turn waits for the decision about a call.
    pub(crate) fn waits_for(&self, approval: &ApprovalRequest) -> bool {
        match &*self.lock_state() {
            TurnState::Parked(outcome) => {
                let is_same = |request: &ApprovalRequest| {
                    (&request.call, &request.args_hash) == (&approval.call, &approval.args_hash)
                };
                matches!(&outcome.status, TurnStatus::Parked(requests) if requests.iter().any(is_same))
            }
            _ => false,
        }
    }

    /// Returns `true` while the turn is parked with this outcome.
    pub(super) fn is_parked_with(&self, outcome: &Arc<TurnOutcome>) -> bool {
        matches!(&*self.lock_state(), TurnState::Parked(parked) if Arc::ptr_eq(parked, outcome))
    }

    /// Returns `true` if the turn has state that neither its request nor its outcome has: a
    /// listener, validators, an edited message, a reply that waits for reports, or a cancellation.
    pub(super) fn has_unwritten_state(&self) -> bool {
        self.0.has_listener
            || self.0.reports.is_some()
            || !self.validators().is_empty()
            || self.0.replaced_input.get().is_some()
            || self.0.cancellation.is_cancelled()
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> TurnState {
        self.lock_state().clone()
    }

    /// Waits until the turn is no longer parked.
    pub(crate) async fn unparked(&self) {
        self.wait(|state| !matches!(state, TurnState::Parked(_))).await;
    }

    async fn wait(&self, is_enough: impl Fn(&TurnState) -> bool) -> TurnState {
        loop {
            // Before the state is read: a change in between wakes this wait.
            let changed = self.0.changed.notified();
            let state = self.state();
            if is_enough(&state) {
                return state;
            }
            changed.await;
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, TurnState> {
        // No code that can panic runs under the lock.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
