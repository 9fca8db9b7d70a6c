//! The latest settled deliveries of a consumer, so that a message whose acknowledgement was lost
//! with the connection is not handled again.
//!
//! An acknowledgement that was lost with its connection is known: the copy that the broker
//! delivers again is acknowledged unseen.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use rockbot_core::MessageId;

/// Number of deliveries that are remembered. At most the prefetched ones can lose their
/// acknowledgement.
const CAPACITY: usize = 2048;

/// A message and the number of its attempt: a retried message has the same id.
pub(crate) type SettledKey = (MessageId, u32);

/// A bounded set of settled deliveries; the oldest delivery is forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Settled(Mutex<SettledSet>);

#[derive(Debug, Default)]
struct SettledSet {
    keys: HashSet<SettledKey>,
    order: VecDeque<SettledKey>,
}

impl Settled {
    /// Records a settled delivery.
    pub(crate) fn insert(&self, key: SettledKey) {
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !set.keys.insert(key.clone()) {
            return;
        }
        set.order.push_back(key);
        if set.order.len() > CAPACITY
            && let Some(oldest) = set.order.pop_front()
        {
            set.keys.remove(&oldest);
        }
    }

    /// Returns `true` if this delivery was settled before.
    pub(crate) fn contains(&self, key: &SettledKey) -> bool {
        let set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        set.keys.contains(key)
    }
}
