//! A turn that this process works on, or that waits here for a person.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rockbot_core::TurnId;
use rockbot_core::chat::TierDecision;
use rockbot_core::turn::{ProgressSink, TurnOutcome, TurnProgress, TurnRequest};
use tokio::sync::{SetOnce, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::ReplySlot;
use crate::turn::CancelReason;

/// What others can see of a turn and do to it while it runs.
#[derive(Debug)]
pub(crate) struct LiveTurn {
    id: TurnId,
    request: Arc<TurnRequest>,
    progress: ProgressSink,
    /// The one who serves the message and sends its reply, if anybody does.
    slot: Option<Arc<ReplySlot>>,
    /// Why its tier was selected, if this process did that.
    decision: OnceLock<TierDecision>,
    stop: CancellationToken,
    reason: OnceLock<CancelReason>,
    /// How many callers wait for it.
    callers: AtomicUsize,
    /// What other messages want to say to it; `None` once it takes no more.
    mailbox: Mutex<Option<Vec<SteeringMessage>>>,
    /// How it will end, for the messages that joined it: they end first.
    reply: SetOnce<Arc<TurnOutcome>>,
    news: watch::Sender<TurnState>,
}

/// Where a turn stands, for those who wait for it.
#[derive(Debug, Clone, Default)]
pub(crate) enum TurnState {
    /// It works, or waits for its session.
    #[default]
    Working,
    /// It waits for a person.
    Parked(Arc<TurnOutcome>),
    /// It ended.
    Ended(Arc<TurnOutcome>),
    /// The host stopped; the turn goes on when it starts again.
    Halted,
}

impl TurnState {
    /// Takes newer news in. A turn that is not worked on here any more stays so, unless it was at its end.
    fn advance(&mut self, newer: Self) -> bool {
        let counts = !matches!(self, Self::Halted) || matches!(newer, Self::Ended(_));
        if counts {
            *self = newer;
        }
        counts
    }
}

/// A message for a running turn.
#[derive(Debug)]
pub(crate) struct SteeringMessage {
    pub(crate) turn: TurnId,
    pub(crate) text: String,
    /// Told once the running turn has taken the message: from then on both end alike. Dropped when that turn ended
    /// first. When nobody listens any more, the message is not wanted.
    pub(crate) taken: oneshot::Sender<()>,
}

impl LiveTurn {
    /// A turn whose message nobody serves.
    pub(crate) fn new(request: Arc<TurnRequest>, progress: ProgressSink) -> Arc<Self> {
        Self::serving(request.turn_id(), request, progress, None)
    }

    pub(crate) fn serving(
        id: TurnId,
        request: Arc<TurnRequest>,
        progress: ProgressSink,
        slot: Option<Arc<ReplySlot>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            request,
            progress,
            slot,
            decision: OnceLock::new(),
            stop: CancellationToken::new(),
            reason: OnceLock::new(),
            callers: AtomicUsize::new(0),
            mailbox: Mutex::new(Some(Vec::new())),
            reply: SetOnce::new(),
            news: watch::Sender::new(TurnState::Working),
        })
    }

    pub(crate) fn id(&self) -> &TurnId {
        &self.id
    }

    pub(crate) fn request(&self) -> &Arc<TurnRequest> {
        &self.request
    }

    pub(crate) fn progress(&self) -> &ProgressSink {
        &self.progress
    }

    /// The one who serves the message and sends its reply, if anybody does.
    pub(crate) fn slot(&self) -> Option<&ReplySlot> {
        self.slot.as_deref()
    }

    /// Remembers why its tier was selected.
    pub(crate) fn routed(&self, decision: Option<TierDecision>) {
        if let Some(decision) = decision {
            // Nobody decides twice about one turn.
            let _ = self.decision.set(decision);
        }
    }

    /// Why its tier was selected, if this process did that.
    pub(crate) fn decision(&self) -> Option<&TierDecision> {
        self.decision.get()
    }

    /// How many callers wait for it.
    pub(crate) fn callers(&self) -> &AtomicUsize {
        &self.callers
    }

    /// Fires when the turn is no longer wanted.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Why the turn is no longer wanted.
    pub(crate) fn reason(&self) -> CancelReason {
        self.reason.get().copied().unwrap_or(CancelReason::Caller)
    }

    /// Ends the turn; the first reason counts.
    pub(crate) fn cancel(&self, reason: CancelReason) {
        let _ = self.reason.set(reason);
        self.stop.cancel();
    }

    /// Hands a message to the turn; gives it back when the turn takes no more.
    pub(crate) fn say(&self, said: SteeringMessage) -> Result<(), SteeringMessage> {
        match &mut *self.mailbox() {
            Some(mailbox) => {
                mailbox.push(said);
                Ok(())
            }
            None => Err(said),
        }
    }

    /// The messages that came since the last time.
    pub(crate) fn take_said(&self) -> Vec<SteeringMessage> {
        let mut said = self.mailbox().as_mut().map(std::mem::take).unwrap_or_default();
        said.retain(|said| !said.taken.is_closed());
        said
    }

    /// Takes no more messages. Those that were not taken learn it by their sender being dropped.
    pub(crate) fn close_mailbox(&self) {
        *self.mailbox() = None;
    }

    /// Takes messages again: the turn goes on after it was parked.
    pub(crate) fn open_mailbox(&self) {
        self.mailbox().get_or_insert_default();
        self.publish(TurnState::Working);
    }

    /// Ends the turn of a caller who went away while it worked; one that waits for a person belongs to whoever
    /// decides.
    pub(crate) fn caller_left(&self) {
        self.news.send_if_modified(|news| {
            if matches!(news, TurnState::Working) {
                self.cancel(CancelReason::Caller);
            }
            false
        });
    }

    /// Tells those who wait where the turn stands.
    pub(crate) fn publish(&self, news: TurnState) {
        if let TurnState::Ended(outcome) = &news {
            self.progress.send(|| TurnProgress::Final((**outcome).clone()));
        }
        self.news.send_if_modified(|now| now.advance(news));
    }

    /// Tells those who wait that the turn rests, unless it is no longer wanted. Returns whether it is wanted.
    pub(crate) fn suspend(&self, news: TurnState) -> bool {
        let mut wanted = true;
        // Whoever cancels it from now on finds it at rest.
        self.news.send_if_modified(|now| {
            wanted = !self.stop.is_cancelled();
            wanted && now.advance(news)
        });
        wanted
    }

    /// Tells the messages that joined this turn how it will end.
    pub(crate) fn announce_outcome(&self, outcome: &Arc<TurnOutcome>) {
        // The first outcome counts; there is no other.
        let _ = self.reply.set(outcome.clone());
    }

    /// How the turn will end; `None` when that will not be known here.
    pub(crate) async fn reply(&self) -> Option<Arc<TurnOutcome>> {
        tokio::select! {
            biased;
            outcome = self.reply.wait() => Some(outcome.clone()),
            _ = self.ended() => None,
        }
    }

    /// The next news but [`TurnState::Working`].
    pub(crate) async fn settled(&self) -> TurnState {
        self.wait(|news| !matches!(news, TurnState::Working)).await
    }

    /// The end of the turn; it may be long after it was parked.
    pub(crate) async fn ended(&self) -> TurnState {
        self.wait(|news| matches!(news, TurnState::Ended(_) | TurnState::Halted))
            .await
    }

    /// Where the turn stands now.
    pub(crate) fn news(&self) -> TurnState {
        self.news.borrow().clone()
    }

    /// Resolves when a parked turn no longer waits.
    pub(crate) async fn resumed(&self) {
        self.wait(|news| !matches!(news, TurnState::Parked(_))).await;
    }

    async fn wait(&self, enough: impl FnMut(&TurnState) -> bool) -> TurnState {
        let mut news = self.news.subscribe();
        let found = news.wait_for(enough).await.map(|news| news.clone());
        // The sender lives as long as `self`.
        found.unwrap_or(TurnState::Halted)
    }

    fn mailbox(&self) -> MutexGuard<'_, Option<Vec<SteeringMessage>>> {
        // No code that can panic runs under the lock.
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
