//! The bound on open log files.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::session::Session;
use super::session_cache::Slot;

/// Maximum number of logs that are kept open. Systems often allow a process 1024 files, for all
/// of its parts.
const LIMIT: usize = 128;

/// The open logs, in the order of their opening.
///
/// The oldest one is closed first (FIFO, not LRU): recording each use would cost a lock per
/// append, and a busy log that is closed is opened again once for every 128 others.
#[derive(Debug, Default)]
pub(super) struct OpenLogs(Mutex<VecDeque<Weak<Mutex<Option<Session>>>>>);

impl OpenLogs {
    /// Records that the log of a session was opened, and closes the oldest one beyond the limit.
    ///
    /// The caller must hold no session: this locks the session of the oldest log, and two callers
    /// that held one another's would deadlock.
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
