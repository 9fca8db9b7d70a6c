//! The requests that came to a manager: running, answered, and cancelled before they came.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rockbot_tools::scripts::wire::ScriptInvokeResponse;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

/// Maximum number of answered requests that are known.
const MAX_ANSWERED: usize = 4_096;

/// Maximum number of cancellations that are kept for requests that have not come yet.
const MAX_EARLY: usize = 1_024;

/// The identity of a request: the agent that sent it, and the id that the agent chose.
pub(crate) type RunKey = (Arc<str>, String);

/// The requests that came to a manager.
#[derive(Debug, Default)]
pub(crate) struct Runs(Mutex<KnownRuns>);

#[derive(Debug, Default)]
struct KnownRuns {
    /// The requests that are being handled: a run ends with its last delivery.
    open: HashMap<RunKey, Weak<Run>>,
    answered: HashSet<RunKey>,
    /// The answered requests, oldest first.
    order: VecDeque<RunKey>,
    /// The cancelled requests that had not come, oldest first.
    early: VecDeque<RunKey>,
}

/// A request from its first delivery to its answer. Deliveries of one request share it.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) cancelled: CancellationToken,
    /// The answer once the script has run; `None` if its agent cancelled it.
    pub(crate) answer: OnceCell<Option<ScriptInvokeResponse>>,
    /// Set once the bus has the answer.
    pub(crate) published: OnceCell<()>,
}

impl Runs {
    /// Returns the run of a request, or `None` if the request is answered.
    pub(crate) fn enter(&self, key: &RunKey) -> Option<Arc<Run>> {
        let mut runs = self.lock();
        if runs.answered.contains(key) {
            return None;
        }
        // As few as scripts run at once.
        runs.open.retain(|_, run| run.strong_count() > 0);
        if let Some(run) = runs.open.get(key).and_then(Weak::upgrade) {
            return Some(run);
        }
        let run = Arc::new(Run::default());
        if runs.early.contains(key) {
            run.cancelled.cancel();
        }
        runs.open.insert(key.clone(), Arc::downgrade(&run));
        Some(run)
    }

    /// Records that a request is answered: its script does not run again.
    pub(crate) fn answered(&self, key: &RunKey) {
        let mut runs = self.lock();
        runs.open.remove(key);
        if runs.answered.insert(key.clone()) {
            runs.order.push_back(key.clone());
        }
        if runs.order.len() > MAX_ANSWERED
            && let Some(oldest) = runs.order.pop_front()
        {
            runs.answered.remove(&oldest);
        }
    }

    /// Cancels a request, also one that comes later.
    pub(crate) fn cancel(&self, key: RunKey) {
        let mut runs = self.lock();
        match runs.open.get(&key).and_then(Weak::upgrade) {
            Some(run) => run.cancelled.cancel(),
            None if runs.answered.contains(&key) => {}
            None => {
                runs.early.push_back(key);
                if runs.early.len() > MAX_EARLY {
                    runs.early.pop_front();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, KnownRuns> {
        // No code that can panic runs between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: usize) -> RunKey {
        ("agent".into(), id.to_string())
    }

    #[test]
    fn deliveries_of_one_request_share_its_run_until_it_is_answered() {
        let runs = Runs::default();
        let [first, second] = [1, 1].map(|id| runs.enter(&key(id)).unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        assert!(runs.enter(&("other".into(), "1".into())).is_some(), "of another agent");
        runs.answered(&key(1));
        assert!(runs.enter(&key(1)).is_none());
        drop((first, second));
        assert!(runs.enter(&key(1)).is_none());
        let unanswered = Arc::downgrade(&runs.enter(&key(2)).unwrap());
        assert!(unanswered.upgrade().is_none(), "it goes back to its queue");
    }

    #[test]
    fn a_cancellation_may_come_first_and_meets_its_request_alone() {
        let runs = Runs::default();
        let open = runs.enter(&key(1)).unwrap();
        for id in [1, 2] {
            runs.cancel(key(id));
        }
        runs.cancel(("other".into(), "3".into()));
        assert!(open.cancelled.is_cancelled());
        let is_cancelled = |id| runs.enter(&key(id)).unwrap().cancelled.is_cancelled();
        assert_eq!([is_cancelled(2), is_cancelled(3)], [true, false]);
    }

    #[test]
    fn what_is_known_is_bounded() {
        let runs = Runs::default();
        for id in 0..10_000 {
            runs.cancel(key(id));
        }
        for id in 0..10_000 {
            runs.enter(&key(id)).unwrap();
            runs.answered(&key(id));
        }
        let known = runs.lock();
        let sizes = (
            known.open.len(),
            known.answered.len(),
            known.order.len(),
            known.early.len(),
        );
        assert_eq!(sizes, (0, MAX_ANSWERED, MAX_ANSWERED, MAX_EARLY));
    }
}
