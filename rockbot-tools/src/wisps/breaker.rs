//! The circuit breaker: a definition that is run again and again is refused.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rockbot_core::Principal;
use tokio::time::Instant;

/// Time that a run counts.
const WINDOW: Duration = Duration::from_secs(5 * 60);

/// Maximum number of runs of one definition in that time.
const MAX_RUNS: usize = 30;

/// Maximum number of definitions that are counted. Beyond it all counts are forgotten.
const MAX_DEFINITIONS: usize = 10_000;

/// The answer for a definition that is refused. It is always the same, so that it does not look
/// like progress.
pub(super) const REFUSED: &str = "blocked: this definition has been run many times within a few minutes. Stop running it: change the \
    definition, or take another way.";

/// The newest runs of each principal's definitions.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<HashMap<(Principal, String), VecDeque<Instant>>>);

impl Breaker {
    /// Counts a run of the definition with this hash. Returns `false` if there were too many runs.
    pub(super) fn admits(&self, principal: &Principal, hash: String) -> bool {
        // No code that can panic runs under the lock.
        let mut definitions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_old = |run: &Instant| now.duration_since(*run) >= WINDOW;
        if definitions.len() >= MAX_DEFINITIONS {
            definitions.retain(|_, runs| runs.back().is_some_and(|run| !is_old(run)));
        }
        if definitions.len() >= MAX_DEFINITIONS {
            definitions.clear();
        }
        let runs = definitions.entry((principal.clone(), hash)).or_default();
        while runs.front().is_some_and(is_old) {
            runs.pop_front();
        }
        if runs.len() >= MAX_RUNS {
            return false;
        }
        runs.push_back(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_definition_is_refused_until_its_runs_are_old() {
        let breaker = Breaker::default();
        let ann = Principal::from("ann");
        let bob = Principal::from("bob");
        let runs = |who: &Principal, hash: &str| (0..40).filter(|_| breaker.admits(who, hash.to_owned())).count();
        assert_eq!(runs(&ann, "a"), MAX_RUNS);
        assert_eq!((runs(&ann, "b"), runs(&bob, "a")), (MAX_RUNS, MAX_RUNS));
        tokio::time::advance(WINDOW / 2).await;
        assert!(!breaker.admits(&ann, "a".to_owned()));
        tokio::time::advance(WINDOW / 2).await;
        assert!(breaker.admits(&ann, "a".to_owned()));
    }
}
