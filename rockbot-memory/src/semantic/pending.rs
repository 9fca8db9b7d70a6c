//! The principals whose entries wait for vectors.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rockbot_core::Principal;
use tokio::sync::Notify;

/// Maximum number of waiting principals; a further principal is added again by its next search.
const MAX_PRINCIPALS: usize = 10_000;

/// A deduplicating queue of principals: the longest waiting comes first.
#[derive(Debug, Default)]
pub(super) struct PendingPrincipals {
    principals: Mutex<VecDeque<Principal>>,
    changed: Notify,
}

impl PendingPrincipals {
    pub(super) fn add(&self, principal: &Principal) {
        let mut principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
        if principals.len() < MAX_PRINCIPALS && !principals.contains(principal) {
            principals.push_back(principal.clone());
            self.changed.notify_one();
        }
    }

    /// Waits for a principal, and removes it from the queue.
    pub(super) async fn next(&self) -> Principal {
        loop {
            let first = self
                .principals
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            match first {
                Some(principal) => return principal,
                None => self.changed.notified().await,
            }
        }
    }
}
