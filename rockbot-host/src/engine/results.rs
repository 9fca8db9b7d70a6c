//! Delivery of results: the end of a turn in the background becomes one message of the session
//! that waits for it, and the answer to that message is announced.
//!
//! The message has an id that follows from the turn, and it is accepted before the turn is
//! finished in the journal. So a crash in between delivers again, and the second message is
//! recognized as the first. A session that is full gets the message later.
//!
//! A request may name a `Recipient`: the end of its turn, whatever it is, becomes one message of
//! that session. The message joins a running turn of its session (or waits, by the recipient's
//! policy). If no turn runs, it waits up to two seconds for results of siblings, which join it,
//! and names the siblings that still run. It is no deeper than the turn that ended, so the depth
//! also bounds the work that its answer delegates.
//!
//! The answer is *announced*: an answer that no caller waits for is a run of the journal
//! (`waiting_runs.rs`, which the outbox of conversations uses, too) until a program takes it.
//! `Agent::announcements` hands it over and counts it as taken when the next announcement is
//! asked for. For principals without such a reader, a host that serves users publishes it under
//! `user.response`, and tries again until an interface is there (`UserProxy::on_announcement`).
//! For each principal 1 000 announcements wait, for seven days.
//!
//! A turn that waits for an approval and has neither caller, listener nor reply topic asks by an
//! announcement. A turn that another turn of the host called (`Agent::as_tool`) asks the user of
//! the turn at the top, with the agents on the way, while the call waits
//! (`engine/approvals_below.rs`).

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::context::Origin;
use rockbot_core::support::{loggable, one_line};
use rockbot_core::trust::Label;
use rockbot_core::turn::{JournalError, ProgressSink, Recipient, TurnOutcome, TurnParent, TurnRequest, TurnStatus};
use rockbot_core::{MessageId, Principal, SessionId, TurnId};
use tokio::time::timeout;

use super::{TurnCall, TurnEngine, TurnError};
use crate::live::LiveTurn;

/// Name of the program that sends results, which is part of the identity of their messages.
const SOURCE: &str = "rockbot.result";

/// Time that a result waits for the results of its siblings, so that one answer tells all of
/// them.
const SIBLINGS_TIME: Duration = Duration::from_secs(2);

/// Maximum number of siblings that are waited for, and that are named.
const MAX_SIBLINGS: usize = 16;

impl TurnEngine {
    /// Tells who waits for the end of a turn: its recipient by a message, its principal by an
    /// announcement. Returns `false` if that failed and is to be tried again. The answer tells the
    /// results of the turns `results`, too.
    pub(super) async fn tell(
        self: &Arc<Self>,
        request: &TurnRequest,
        outcome: &TurnOutcome,
        results: &[TurnId],
    ) -> bool {
        // Boxed: few turns have either, and every turn's future would have room for both.
        match &request.recipient {
            Some(recipient) => self.deliver(request, recipient, outcome).await,
            None if request.is_announced => Box::pin(self.announce_end(request, outcome, results)).await,
            None => true,
        }
    }

    /// Accepts the result of a turn as a message of its recipient's session.
    // A named future, since the message begins a turn, whose future contains this future.
    fn deliver<'a>(
        self: &'a Arc<Self>,
        request: &'a TurnRequest,
        recipient: &'a Recipient,
        outcome: &'a TurnOutcome,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let notes = self.notes_of(request).await;
            let message = self.result_message(request, recipient, outcome, &notes);
            let accepted = match self.knows(&message.turn_id()).await {
                Ok(true) => return true,
                Ok(false) => {
                    let call = TurnCall::new(message, ProgressSink::none());
                    self.submit(call, None, Duration::ZERO).await.map(drop)
                }
                Err(error) => Err(error.into()),
            };
            accepted.map_or_else(|error| is_settled(&outcome.turn, &error), |()| true)
        })
    }

    /// Returns the keys that a turn left in its own namespace of working memory.
    async fn notes_of(&self, request: &TurnRequest) -> Vec<String> {
        let Some((memory, namespace)) = self.working_memory.as_ref().zip(request.namespace.as_ref()) else {
            return Vec::new();
        };
        // The result is told without the keys of a memory that fails.
        let notes = memory
            .list(&request.principal, Some(namespace))
            .await
            .unwrap_or_default();
        let mut keys: Vec<_> = notes.iter().map(|note| format!("`{}`", note.key)).collect();
        keys.sort_unstable();
        keys
    }

    fn result_message(
        &self,
        request: &TurnRequest,
        recipient: &Recipient,
        outcome: &TurnOutcome,
        notes: &[String],
    ) -> TurnRequest {
        let siblings = self.siblings(&request.principal, &recipient.session, &outcome.turn);
        let message = MessageId::from(outcome.turn.as_str());
        let mut result = TurnRequest::new(
            recipient.session.clone(),
            message,
            content_of(recipient, outcome, notes, &siblings),
        )
        .with_principal(request.principal.clone())
        .with_source(SOURCE)
        .with_origin(Origin::Subagent)
        .with_priority(request.priority)
        .with_trust(request.trust)
        .with_label(Some(outcome.label.clone()).filter(Label::is_untrusted))
        .with_busy(recipient.busy)
        .with_announced(true)
        .with_informing(request.is_informing);
        // Not deeper than the turn that ended: turns that its answer begins are deeper, so no chain
        // of results is endless.
        let depth = request.parent.as_ref().map_or(1, |parent| parent.depth);
        result.parent = Some(TurnParent::new(outcome.turn.clone(), depth));
        result.result_of = Some(outcome.turn.clone());
        result.trace.clone_from(&request.trace);
        result
    }

    /// Returns the turns here, but for `except`, whose results go to a session.
    fn siblings(&self, principal: &Principal, session: &SessionId, except: &TurnId) -> Vec<Arc<LiveTurn>> {
        let mut live = self
            .live
            .matching(|turn| turn.recipient == Some(session) && turn.principal == principal);
        live.retain(|live| live.id() != except);
        live.sort_by(|a, b| a.id().cmp(b.id()));
        live
    }

    /// Lets the message of a result wait a little for the messages of its siblings, which join its
    /// turn.
    pub(super) async fn await_siblings(&self, live: &LiveTurn) {
        let request = live.request();
        let Some(result_of) = &request.result_of else { return };
        let siblings = self.siblings(&request.principal, &request.session, result_of);
        let ended = join_all(siblings.iter().take(MAX_SIBLINGS).map(|sibling| sibling.ended()));
        let waited = live.cancellation().run_until_cancelled(timeout(SIBLINGS_TIME, ended));
        self.closing.run_until_cancelled(waited).await;
    }
}

/// Returns `true` for an error that ends the attempts with a result or an announcement.
pub(super) fn is_settled(turn: &TurnId, error: &TurnError) -> bool {
    let told = error.to_string();
    // A full disk is repaired by a person, and the result must not be lost until then.
    let is_passing = !matches!(
        error,
        TurnError::Content(_) | TurnError::IdTooLong { .. } | TurnError::Journal(JournalError::Conflict { .. })
    );
    if is_passing {
        tracing::warn!(%turn, error = %loggable(&told), "end of a turn not told yet; it is tried again later")
    } else {
        tracing::error!(%turn, error = %loggable(&told), "end of a turn cannot be told; it is kept as its outcome");
    }
    !is_passing
}

/// Returns the message that tells a session of a result.
fn content_of(recipient: &Recipient, outcome: &TurnOutcome, notes: &[String], siblings: &[Arc<LiveTurn>]) -> Content {
    let name = one_line(&recipient.name);
    let ended = match &outcome.status {
        TurnStatus::Answered if outcome.is_unfinished() => {
            format!("The background work \"{name}\" ended in the middle of its work. Its last words:\n")
        }
        TurnStatus::Answered => format!("The background work \"{name}\" is done. Its result:\n"),
        TurnStatus::Partial(limit) => {
            format!("The background work \"{name}\" was stopped early, since the {limit} was used up. What it has:\n")
        }
        TurnStatus::Cancelled | TurnStatus::Superseded => format!("The background work \"{name}\" was cancelled:\n"),
        _ => format!("The background work \"{name}\" failed:\n"),
    };
    let origin = Provenance::labelled("agent", &outcome.label);
    let result = outcome.content();
    let result = result
        .parts()
        .iter()
        .map(|part| part.clone().with_provenance(origin.clone()));
    let host = |text: String| ContentPart::text(text).with_provenance(Provenance::HOST);
    let parts = std::iter::once(host(ended)).chain(result);
    Content::from_iter(parts.chain([host(closing(outcome, notes, siblings))]))
}

/// Returns the last part of a result's message: its calls, notes, work that goes on, and the
/// request to the model.
fn closing(outcome: &TurnOutcome, notes: &[String], siblings: &[Arc<LiveTurn>]) -> String {
    let mut text = String::from("\n\n");
    if !outcome.calls.is_empty() {
        let _ = write!(text, "Its calls: {}. ", outcome.call_ledger());
    }
    if outcome.calls.iter().any(|call| call.is_error) {
        text.push_str("What failed is not done, whatever the result says. ");
    }
    if !notes.is_empty() {
        let _ = write!(
            text,
            "Its notes are in working memory: {}. ",
            named(notes.iter().map(|note| &**note))
        );
    }
    let running = siblings.iter().filter_map(|live| live.request().recipient.as_ref());
    let running: Vec<_> = running.map(|recipient| one_line(&recipient.name)).collect();
    if !running.is_empty() {
        let _ = write!(text, "Still running: {}. ", named(running.iter().map(|name| &**name)));
    }
    text.push_str("Tell the user the result in a short message of your own.");
    text
}

/// Returns the first names, and how many more there are.
fn named<'a>(mut names: impl Iterator<Item = &'a str>) -> String {
    let mut text = names.by_ref().take(MAX_SIBLINGS).collect::<Vec<_>>().join(", ");
    let more = names.count();
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}
