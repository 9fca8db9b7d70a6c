//! The pool of read connections.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::connection::connect;
use super::error::QueryError;

/// Maximum number of concurrent reads; further reads wait for a permit.
const MAX_READERS: usize = 8;

/// Read-only connections, opened on demand and reused.
#[derive(Debug)]
pub(in crate::sqlite) struct ReadPool {
    path: PathBuf,
    pub(in crate::sqlite) permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl ReadPool {
    pub(in crate::sqlite) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            permits: Semaphore::new(MAX_READERS),
            idle: Mutex::default(),
        }
    }

    /// Closes the idle connections.
    pub(in crate::sqlite) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Runs `work` on an idle or new connection. Blocks on disk reads: call it on a blocking thread,
    /// with a permit.
    pub(in crate::sqlite) fn read<R>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, QueryError>,
    ) -> Result<R, QueryError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        };
        // In WAL mode a read transaction is a snapshot: several queries of `work` see the same state.
        let moment = connection.unchecked_transaction()?;
        let result = work(&moment);
        drop(moment);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(connection);
        result
    }
}
