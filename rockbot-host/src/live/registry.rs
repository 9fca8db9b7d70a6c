//! The registry of the live turns of a host.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockbot_core::TurnId;
use rockbot_core::support::DigestMap;

use super::parked::{ParkedTurn, TurnIndex};
use super::{LiveTurn, TurnState};

/// The live turns of a host by id: turns that work or are queued here, and turns that are parked
/// here.
///
/// A turn is in the registry from its admission until its end is in the journal, so a redelivered
/// message finds the turn that is under way instead of starting a second turn.
#[derive(Debug, Default)]
pub(crate) struct LiveTurns(Mutex<DigestMap<TurnId, Entry>>);

#[derive(Debug)]
enum Entry {
    Whole(Arc<LiveTurn>),
    /// A parked turn, in its compact form.
    Parked(Box<ParkedTurn>),
}

impl Entry {
    fn index(&self) -> TurnIndex<'_> {
        match self {
            Self::Whole(live) => TurnIndex::of(live.request()),
            Self::Parked(parked) => parked.index(),
        }
    }

    fn is_parked(&self) -> bool {
        match self {
            Self::Whole(live) => matches!(live.state(), TurnState::Parked(_)),
            Self::Parked(_) => true,
        }
    }

    /// Returns the turn if it is whole, or a task or a caller holds it.
    fn held(self) -> Option<Arc<LiveTurn>> {
        match self {
            Self::Whole(live) => Some(live),
            Self::Parked(parked) => parked.held(),
        }
    }
}

impl LiveTurns {
    /// Adds a turn; a turn of the same id is replaced.
    pub(crate) fn insert(&self, turn: &Arc<LiveTurn>) {
        self.lock().insert(turn.id().clone(), Entry::Whole(turn.clone()));
    }

    /// Keeps a turn of the registry in its compact form, if it is parked and has one.
    pub(crate) fn compact(&self, turn: &Arc<LiveTurn>) {
        let TurnState::Parked(outcome) = turn.state() else {
            return;
        };
        // Before the lock: the form of a long request takes its time.
        let Some(parked) = ParkedTurn::of(turn, &outcome) else {
            return;
        };
        let parked = Box::new(parked);
        let mut turns = self.lock();
        // A turn that continued meanwhile is whole again.
        if let Some(entry) = turns.get_mut(turn.id())
            && turn.is_parked_with(&outcome)
        {
            *entry = Entry::Parked(parked);
        }
    }

    /// Removes a turn, if it is present.
    pub(crate) fn remove(&self, id: &TurnId) {
        let removed = self.lock().remove(id);
        // After the lock is released: a turn's sink is the caller's code.
        drop(removed);
    }

    /// Returns `true` if the turn with this id is parked here.
    pub(crate) fn is_parked(&self, id: &TurnId) -> bool {
        self.lock().get(id).is_some_and(Entry::is_parked)
    }

    /// Returns the ids of the turns that are parked here.
    pub(crate) fn parked(&self) -> Vec<TurnId> {
        let turns = self.lock();
        let parked = turns.iter().filter(|(_, entry)| entry.is_parked());
        parked.map(|(id, _)| id.clone()).collect()
    }

    /// Removes a turn that is parked, and returns it if anything holds it.
    pub(crate) fn remove_parked(&self, id: &TurnId) -> Option<Arc<LiveTurn>> {
        let mut turns = self.lock();
        if turns.get(id)?.is_parked() {
            turns.remove(id)?.held()
        } else {
            None
        }
    }

    /// Removes all turns, and returns those that are whole or that anything holds.
    pub(crate) fn take_all(&self) -> Vec<Arc<LiveTurn>> {
        let turns = std::mem::take(&mut *self.lock());
        turns.into_values().filter_map(Entry::held).collect()
    }

    /// Returns `true` if the turn with this id is live here.
    pub(crate) fn contains(&self, id: &TurnId) -> bool {
        self.lock().contains_key(id)
    }

    /// Returns the turn with this id, if it is live here.
    pub(crate) fn find(&self, id: &TurnId) -> Option<Arc<LiveTurn>> {
        match self.lock().get_mut(id)? {
            Entry::Whole(live) => Some(live.clone()),
            Entry::Parked(parked) => Some(parked.live(id)),
        }
    }

    /// Keeps a turn whole from now on, if it is live here: its holder changes it.
    pub(crate) fn keep_whole(&self, id: &TurnId) {
        if let Some(entry) = self.lock().get_mut(id)
            && let Entry::Parked(parked) = entry
        {
            *entry = Entry::Whole(parked.live(id));
        }
    }

    /// Returns the number of live turns.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns the live turns that match. The lock is released before the caller looks at them, so
    /// acting on a turn may register or remove others.
    pub(crate) fn matching(&self, is_match: impl Fn(TurnIndex<'_>) -> bool) -> Vec<Arc<LiveTurn>> {
        let ids: Vec<_> = {
            let turns = self.lock();
            let matching = turns.iter().filter(|(_, entry)| is_match(entry.index()));
            matching.map(|(id, _)| id.clone()).collect()
        };
        // A lock for each, since parked turns are read from their compact form.
        ids.iter().filter_map(|id| self.find(id)).collect()
    }

    /// Returns `true` if any turn works or waits for its session.
    pub(crate) fn any_working(&self) -> bool {
        let works = |entry: &Entry| match entry {
            Entry::Whole(live) => matches!(live.state(), TurnState::Working),
            Entry::Parked(_) => false,
        };
        self.lock().values().any(works)
    }

    fn lock(&self) -> MutexGuard<'_, DigestMap<TurnId, Entry>> {
        // No code that can panic runs under the lock, so a poisoned one still guards a consistent map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::turn::{
        ApprovalRequest, Approver, BudgetLimit, ProgressSink, Recipient, TurnEvents, TurnFeed, TurnOutcome, TurnParent,
        TurnProgress, TurnRequest, TurnStatus,
    };

    use super::*;
    use crate::turn::CancelReason;

    fn request(message: &str) -> TurnRequest {
        TurnRequest::new("s", message, "Send it.")
            .with_principal("ann")
            .with_recipient(Recipient::new("main", "work"))
    }

    fn outcome(id: &TurnId, text: &str) -> TurnState {
        TurnState::Parked(Arc::new(TurnOutcome::new(
            id.clone(),
            TurnStatus::Parked(Vec::new()),
            text,
        )))
    }

    /// Adds a turn that is parked, in its compact form if it has one.
    fn parked(turns: &LiveTurns, request: TurnRequest, progress: ProgressSink) -> Arc<LiveTurn> {
        let feed = Some(TurnFeed::new());
        let live = LiveTurn::accepted(request.turn_id(), Arc::new(request), (progress, feed), None);
        turns.insert(&live);
        live.mailbox().close();
        assert!(live.suspend(outcome(live.id(), "May I?")));
        turns.compact(&live);
        live
    }

    fn is_compact(turns: &LiveTurns, id: &TurnId) -> bool {
        matches!(turns.lock().get(id), Some(Entry::Parked(_)))
    }

    #[tokio::test]
    async fn a_parked_turn_is_the_same_again_once_nothing_held_it() {
        let turns = LiveTurns::default();
        let live = parked(&turns, request("m"), ProgressSink::none());
        let id = live.id().clone();
        assert!(is_compact(&turns, &id) && !turns.any_working());
        let held = turns.find(&id).unwrap();
        assert!(Arc::ptr_eq(&held, &live), "its holders share it");
        drop((live, held));

        let again = turns.find(&id).unwrap();
        assert_eq!(**again.request(), request("m"));
        assert!(matches!(again.state(), TurnState::Parked(outcome) if outcome.text == "May I?"));
        assert!(Arc::ptr_eq(&again, &turns.find(&id).unwrap()));
        let waiting = tokio::spawn({
            let again = again.clone();
            async move { again.ended().await }
        });
        tokio::task::yield_now().await;
        turns.find(&id).unwrap().reopen();
        turns.insert(&again);
        let ended = TurnOutcome::new(id.clone(), TurnStatus::Partial(BudgetLimit::ModelCalls), "half");
        again.publish(TurnState::Ended(Arc::new(ended)));
        assert!(matches!(waiting.await, Ok(TurnState::Ended(_))));
        assert!(!is_compact(&turns, &id));
    }

    /// Adds a turn that is parked in its compact form, after a report, with a request for approval.
    fn parked_with_reports(turns: &LiveTurns) -> (Arc<LiveTurn>, TurnFeed, Vec<TurnProgress>) {
        let request = request("m");
        let id = request.turn_id();
        let asked = ApprovalRequest::new(id.clone(), "c1", "send", "{}");
        let reports = vec![
            TurnProgress::Delta("May I?".to_owned()),
            TurnProgress::ApprovalNeeded(asked.clone()),
        ];
        let feed = TurnFeed::restored(7, reports.clone());
        let listener = (ProgressSink::none(), Some(feed.clone()));
        let live = LiveTurn::accepted(id.clone(), Arc::new(request), listener, None);
        turns.insert(&live);
        let outcome = TurnOutcome::new(id, TurnStatus::Parked(vec![asked]), "May I?");
        assert!(live.suspend(TurnState::Parked(Arc::new(outcome))));
        (live, feed, reports)
    }

    fn has_feed(turns: &LiveTurns, id: &TurnId) -> bool {
        matches!(turns.lock().get(id), Some(Entry::Parked(parked)) if parked.has_feed())
    }

    #[test]
    fn a_late_reader_gets_the_reports_of_a_parked_turn() {
        let turns = LiveTurns::default();
        let (live, _, reports) = parked_with_reports(&turns);
        turns.compact(&live);
        let id = live.id().clone();
        drop(live);
        assert!(is_compact(&turns, &id) && !has_feed(&turns, &id));
        let again = turns.find(&id).unwrap();
        assert_eq!(again.feed().unwrap().without_readers(), Some((7, reports)));
    }

    #[tokio::test]
    async fn a_reader_of_a_turn_before_it_was_parked_gets_the_reports_after_it() {
        let turns = LiveTurns::default();
        let (live, feed, _) = parked_with_reports(&turns);
        let id = live.id().clone();
        let mut events = TurnEvents::new(id.clone(), Some(&feed), 14, Box::pin(std::future::pending()));
        drop(feed);
        turns.compact(&live);
        drop(live);
        assert!(has_feed(&turns, &id));
        let later = TurnProgress::Note("Sent.".to_owned());
        turns.find(&id).unwrap().progress().send(|| later.clone());
        assert_eq!(events.next().await.unwrap().unwrap(), later);
    }

    #[test]
    fn a_search_finds_parked_turns_by_their_index() {
        let turns = LiveTurns::default();
        let mut below = request("below");
        below.parent = Some(TurnParent::new(TurnId::from("above"), 1));
        below.approver = Some(Approver::new("bob", "desk"));
        let ids = [request("m"), below].map(|request| parked(&turns, request, ProgressSink::none()).id().clone());
        let found = |is_match: &dyn Fn(TurnIndex<'_>) -> bool| {
            let mut found: Vec<_> = turns.matching(is_match).iter().map(|live| live.id().clone()).collect();
            found.sort();
            found
        };
        let mut all = ids.to_vec();
        all.sort();
        assert_eq!(
            found(&|turn| turn.principal.as_str() == "ann" && turn.session.as_str() == "s"),
            all
        );
        assert_eq!(
            found(&|turn| turn.recipient.is_some_and(|session| session.as_str() == "main")),
            all
        );
        assert_eq!(found(&|turn| turn.parent == Some(&TurnId::from("above"))), ids[1..]);
        assert_eq!(
            found(&|turn| turn.approver.is_some_and(|by| by.as_str() == "bob")),
            ids[1..]
        );
        assert!(found(&|turn| turn.principal.as_str() == "bob").is_empty());
        assert!(turns.take_all().is_empty() && turns.len() == 0, "nothing holds them");
    }

    #[test]
    fn what_memory_alone_has_stays() {
        let turns = LiveTurns::default();
        let live = parked(&turns, request("m"), ProgressSink::new(|_| ()));
        assert!(!is_compact(&turns, live.id()), "its caller listens");
        let id = parked(&turns, request("other"), ProgressSink::none()).id().clone();
        turns.keep_whole(&id);
        turns.find(&id).unwrap().cancel(CancelReason::Caller);
        let cancelled = turns.find(&id).unwrap();
        assert!(cancelled.cancellation().is_cancelled(), "it stays cancelled");
        turns.compact(&cancelled);
        assert!(!is_compact(&turns, &id));
        assert!(turns.remove_parked(&id).is_some() && !turns.contains(&id));
    }
}
