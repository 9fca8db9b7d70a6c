//! The connections that read, side by side.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::connection::connect;
use super::error::SqliteError;

/// How many reads run at the same time; others wait.
const MAX_READERS: usize = 8;

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

    pub(in crate::sqlite) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Blocks while the disk is read.
    pub(in crate::sqlite) fn read<R>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, SqliteError>,
    ) -> Result<R, SqliteError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?,
        };
        // What is read is of one moment.
        let moment = connection.unchecked_transaction()?;
        let result = work(&moment);
        drop(moment);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(connection);
        result
    }
}
