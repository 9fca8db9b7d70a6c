//! The end of a turn: its conversation, the turns that joined it, its reply and its last journal
//! record, in this order.
//!
//! A failure that was told stays told. If it does not follow from the records (a failure of a
//! store or a turn layer, or a panic), it is recorded before it is told (`TurnEvent::Failed`), so
//! that a resume gives the same reply.
//!
//! While the journal takes no records, nothing is told: the caller gets an error, the turn stays
//! unfinished, and it is resumed after 15 seconds, at a redelivery and at the next start. A
//! passing error of the journal (`StoreErrorKind::Unavailable`) is no failure of the turn: the
//! turn is left unfinished likewise, and goes on from its records. The same holds for a
//! cancellation: `Agent::cancel` returns once the cancellation is in the journal, else with an
//! error. A turn whose cancellation was not recorded is not worked on again in this process.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rockbot_core::chat::{Provenance, Role};
use rockbot_core::store::{ConversationLog, ConversationTurn, LogEntry};
use rockbot_core::support::{caught, loggable};
use rockbot_core::turn::{Claim, JournalError, RunBody, TurnOutcome, TurnRequest, TurnStatus};
use tokio::time::timeout;

use super::claim::HeldClaim;
use super::history::rounds_of;
use super::reply::reply;
use super::{TurnEngine, TurnError, span};
use crate::conversation_outbox::Kept;
use crate::live::{LiveTurn, TurnState};
use crate::turn::{Turn, TurnEvent, from_sender, record};

/// Time for collecting the results of tier selections before one write.
const ROUTING_LOG_DELAY: Duration = Duration::from_secs(1);

impl TurnEngine {
    /// Ends a turn: the conversation first, then the turns of messages that joined it, then the reply
    /// and the journal, then the observers.
    ///
    /// A crash in between ends the turn once more at the next start, with the same outcome: the
    /// conversation memory deduplicates by turn id, and the reply has the same message id.
    pub(super) async fn end(
        self: &Arc<Self>,
        live: &Arc<LiveTurn>,
        claim: HeldClaim,
        turn: &mut Turn,
        outcome: TurnOutcome,
    ) {
        let recorded = self.record_failure(&claim, turn, &outcome);
        let recorded = match recorded.await {
            Ok(()) => self.check_held(&claim).await,
            failed => failed,
        };
        if let Err(error) = recorded {
            return self.leave_unfinished(live, claim, error).await;
        }
        let turn = &*turn;
        let is_remembered = self.remember(turn, &outcome).await;
        self.note_tier(live, turn, &outcome);
        let outcome = Arc::new(outcome);
        // Before the outcome is announced: the joined turns end with it, and are not found any more.
        let joined: Vec<_> = turn.joined().iter().filter_map(|joined| self.find(joined)).collect();
        live.announce_outcome(&outcome);
        // The joined turns end first. In the other order a crash in between would resume them as
        // turns of their own, because only the records of this turn state which messages joined it.
        for joined in &joined {
            joined.ended().await;
        }
        let results = joined.iter().filter_map(|joined| joined.request().result_of.clone());
        live.set_results(results.collect());
        self.conclude(live, claim, turn, outcome.clone(), is_remembered).await;
        self.observe(turn, &outcome);
    }

    /// Records a failure that does not follow from the journal: of a store, of a turn layer, or a
    /// panic. Otherwise a resume would give the message another answer than the first.
    async fn record_failure(&self, claim: &Claim, turn: &mut Turn, outcome: &TurnOutcome) -> Result<(), JournalError> {
        let TurnStatus::Failed(failure) = &outcome.status else {
            return Ok(());
        };
        let is_recorded = |own: TurnOutcome| own.status == outcome.status && own.text == outcome.text;
        if turn.outcome().is_some_and(is_recorded) {
            return Ok(());
        }
        let failure = failure.clone();
        let text = outcome.text.clone();
        let event = TurnEvent::Failed { failure, text };
        let at = self.clock.now();
        let steps = turn.on(&event, at);
        self.journal.append(claim, &[record(event, steps, at, true)]).await?;
        Ok(())
    }

    /// Leaves a turn unfinished that a passing error of the journal interrupted, or whose failure
    /// the journal did not take: an outcome that was told would not stay told. The turn is resumed
    /// later, here or at the next start, and its message gets its single reply then.
    pub(super) async fn leave_unfinished(self: &Arc<Self>, live: &LiveTurn, claim: HeldClaim, error: JournalError) {
        tracing::error!(turn = %live.id(), error = %loggable(&error.to_string()), "journal write failed; the turn is resumed later, and gets its reply then");
        live.set_error(TurnError::from(error).into());
        self.note_called_off(live);
        claim.release().await;
        self.deregister(live);
        live.publish(TurnState::Halted);
        self.resume_later();
    }

    /// Records the result of the tier that was selected. Results of turns that end within a second
    /// share one write.
    fn note_tier(self: &Arc<Self>, live: &LiveTurn, turn: &Turn, outcome: &TurnOutcome) {
        let Some(router) = &self.router else { return };
        if router.ended(turn, live.tier_decision(), outcome, self.clock.now()) {
            let router = router.clone();
            let closing = self.closing.clone();
            self.spawn(async move {
                // A stopping host writes at once: its tasks have a deadline.
                let _ = timeout(ROUTING_LOG_DELAY, closing.cancelled()).await;
                router.write();
            });
        }
    }

    /// Sends the reply, writes the end of the turn to the journal, and publishes it to the callers
    /// that wait. A turn that is neither in its conversation nor waits for it, or whose end its
    /// recipient does not know, stays unfinished, and ends once more later.
    pub(super) async fn conclude(
        self: &Arc<Self>,
        live: &LiveTurn,
        claim: HeldClaim,
        turn: &Turn,
        outcome: Arc<TurnOutcome>,
        is_remembered: bool,
    ) {
        span::ended(&outcome);
        self.meters.record(&outcome, turn.worked());
        let is_told = self.tell(turn.request(), &outcome, live.results()).await;
        let is_settled = is_remembered && is_told;
        let Some(replies) = self.reply_sender(live) else {
            // Without a reply to send, the end is in the journal before any caller sees it.
            self.finish_if(is_settled, claim, Arc::clone(&outcome)).await;
            self.deregister(live);
            return live.publish(TurnState::Ended(outcome));
        };
        // Published first, because the progress reports end with it, and the reply follows them. The
        // journal is written only once the reply is out: a crash before that sends it again, under the
        // same message id; in the other order the crash would lose it.
        live.publish(TurnState::Ended(Arc::clone(&outcome)));
        match reply(&**replies, live, &outcome).await {
            true => self.finish_if(is_settled, claim, outcome).await,
            // Unfinished, the turn ends once more at the next start, with the same outcome, and tries to
            // send again.
            false => claim.release().await,
        }
        self.deregister(live);
    }

    async fn finish_if(self: &Arc<Self>, is_settled: bool, claim: HeldClaim, outcome: Arc<TurnOutcome>) {
        if is_settled {
            self.finish(claim, outcome).await
        } else {
            claim.release().await;
            self.resume_later();
        }
    }

    /// Writes the end of a turn to the journal. A failure is logged: the turn then ends once more
    /// when its message comes again, or at the next start.
    pub(super) async fn finish(&self, claim: HeldClaim, outcome: Arc<TurnOutcome>) {
        let turn = claim.run().clone();
        if let Err(error) = claim.finish(&RunBody::new(outcome)).await {
            tracing::error!(%turn, %error, "journal write failed; the turn ends again when the host restarts");
        }
    }

    /// Appends a turn to its conversation, and to the conversation log if there is one. Returns
    /// `false` if the turn neither is in its conversation nor waits for it.
    ///
    /// A turn that failed before it called a tool leaves nothing behind: the user can send the
    /// message again, and the model does not need to know of the failure. Neither does a refused
    /// message, which no model is to read.
    async fn remember(self: &Arc<Self>, turn: &Turn, outcome: &TurnOutcome) -> bool {
        let is_without_trace = match outcome.status {
            TurnStatus::Failed(_) => outcome.calls.is_empty(),
            TurnStatus::Refused => true,
            _ => false,
        };
        let request = turn.request();
        // The conversation with a program is in the journal, and no later turn reads it.
        if is_without_trace || self.agents.of(request).is_program {
            return true;
        }
        let conversation = (&request.principal, &request.session);
        let entries = || self.entries_of(turn, outcome);
        let kept = if request.is_forgotten {
            Ok(Kept::InMemory)
        } else {
            self.memory.append_turn(conversation, turn.id(), entries).await
        };
        match &kept {
            Ok(Kept::InMemory) => {}
            Ok(Kept::InJournal) => self.resume_later(),
            Err(error) => {
                tracing::error!(turn = %turn.id(), error = %loggable(&error.to_string()), "neither the conversation memory nor the journal takes the turn; it ends once more later");
            }
        }
        // The log is written even when the memory failed: then the log still has the turn.
        if let Some(log) = &self.log {
            self.log_to(&**log, turn, outcome).await;
        }
        kept.is_ok()
    }

    async fn log_to(&self, log: &dyn ConversationLog, turn: &Turn, outcome: &TurnOutcome) {
        let request = turn.request();
        let entries = log_entries(request, self.entries_of(turn, outcome));
        let logging = AssertUnwindSafe(log.append(&request.principal, entries)).catch_unwind();
        // A panic of a store is caught, because the reply must go out in any case.
        let error = match caught(logging.await) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic,
        };
        tracing::error!(turn = %turn.id(), error = %loggable(&error), "conversation log unavailable; the turn is missing from it");
    }

    /// Returns the entries that the conversation keeps of a turn: its messages and its reply.
    fn entries_of(&self, turn: &Turn, outcome: &TurnOutcome) -> Vec<ConversationTurn> {
        let request = turn.request();
        // A text of the host, such as an error reply, must not stand in the conversation as the model's
        // own words.
        let reply_role = if outcome.is_answer() {
            Role::Assistant
        } else {
            Role::System
        };
        let entry = |role, content| ConversationTurn::new(role, content, self.clock.now(), outcome.turn.clone());
        // Messages that joined state their own origin already.
        let own = from_sender(request.content.clone(), request);
        let joined = turn.said_by_user().skip(1).cloned();
        let messages = std::iter::once(own)
            .chain(joined)
            .map(|content| entry(Role::User, content));
        let rounds = if self.history.keep_calls {
            rounds_of(turn)
        } else {
            Vec::new()
        };
        let reply = entry(reply_role, outcome.content()).with_rounds(rounds);
        let reply = reply.with_active_tools(turn.active_tools().to_vec());
        let reply = reply.with_endorsed(turn.endorsed().to_vec());
        // The next turn, and another process, know by the label which texts the answer was made of.
        let reply = reply.with_label(turn.label().clone());
        messages.chain([reply]).collect()
    }
}

/// Returns the entries of a turn as the log keeps them. The label of an answer stands in its
/// entry. The label of a message follows from its parts; parts without an origin are the user's.
fn log_entries(request: &TurnRequest, entries: Vec<ConversationTurn>) -> Vec<LogEntry> {
    let entry = |entry: ConversationTurn| {
        let content = entry.content.attributed(Provenance::USER);
        let label = entry.label.unwrap_or_else(|| content.label());
        LogEntry::new(
            request.session.clone(),
            entry.role,
            content.into_words(),
            entry.timestamp,
        )
        .with_label(label)
        .with_trust(request.trust)
    };
    entries.into_iter().map(entry).collect()
}
