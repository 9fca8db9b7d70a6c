//! How many logs are open at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::session::Session;
use super::session_cache::Slot;

/// The most logs that are kept open; systems often allow a process 1024 files.
const LIMIT: usize = 128;

/// The logs that are open, in the order in which they were opened. A busy one is opened again once for every 128 others.
#[derive(Debug, Default)]
pub(super) struct OpenLogs(Mutex<VecDeque<Weak<Mutex<Option<Session>>>>>);

impl OpenLogs {
    /// Notes that the log of a session was opened, and closes the oldest one beyond the limit. The caller holds no
    /// session.
    pub(super) fn opened(&self, slot: &Slot) {
        let oldest = {
            let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            open.push_back(Arc::downgrade(slot));
            if open.len() > LIMIT { open.pop_front() } else { None }
        };
        if let Some(slot) = oldest.and_then(|slot| slot.upgrade())
            && let Some(session) = slot.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            session.log = None;
        }
    }
}
