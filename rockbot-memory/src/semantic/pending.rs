//! Whose entries wait for vectors.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rockbot_core::Principal;
use tokio::sync::Notify;

/// How many principals wait at most; those beyond wait again when they are searched next.
const MAX_PRINCIPALS: usize = 10_000;

/// Principals, each once: who waits the longest comes first.
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

    /// Waits for one, and takes it away.
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
