//! Lanes: jobs of one key run one after the other, in the order of their entry.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use tokio::sync::{Mutex as FairMutex, OwnedMutexGuard};

/// Number of lanes beyond which unused ones are removed.
const SWEEP_ABOVE: usize = 1024;

/// The lanes of a subscription.
#[derive(Debug, Default)]
pub(crate) struct Lanes(Mutex<LaneTable>);

#[derive(Debug, Default)]
struct LaneTable {
    lanes: HashMap<String, Arc<FairMutex<()>>>,
    /// Number of lanes at which the next sweep is worth its time.
    sweep_at: usize,
}

/// A place in a lane. Resolves to a guard when the place is first in its lane; dropping the guard
/// admits the next place, and dropping the place gives it up.
pub(crate) type Turn = Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>;

impl Lanes {
    /// Enters the lane of `key` behind all that entered before.
    pub(crate) fn enter(&self, key: &str) -> Turn {
        let lane = self.lane(key);
        let mut turn: Turn = Box::pin(lane.lock_owned());
        // The mutex is fair: the first poll takes the place in its queue.
        match turn.as_mut().now_or_never() {
            Some(guard) => Box::pin(std::future::ready(guard)),
            None => turn,
        }
    }

    fn lane(&self, key: &str) -> Arc<FairMutex<()>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.lanes.len() > table.sweep_at.max(SWEEP_ABOVE) {
            // A lane that is in use is shared with a guard or a waiting turn.
            table.lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
            table.sweep_at = table.lanes.len() * 2;
        }
        Arc::clone(table.lanes.entry(key.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn turns_are_taken_in_order_even_when_one_is_given_up() {
        let lanes = Lanes::default();
        let first = lanes.enter("a").await;
        let second = lanes.enter("a");
        let mut third = lanes.enter("a");
        assert!(lanes.enter("b").now_or_never().is_some());
        drop(second);
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        assert!(third.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn lanes_that_are_not_in_use_are_removed() {
        let lanes = Lanes::default();
        let _kept = lanes.enter("kept").await;
        for number in 0..5000 {
            drop(lanes.enter(&number.to_string()).await);
        }
        let table = lanes.0.lock().unwrap();
        assert!(table.lanes.len() <= SWEEP_ABOVE + 1);
        assert!(table.lanes.contains_key("kept"));
    }
}
