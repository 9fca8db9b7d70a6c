//! [`FileConversationLog`]: one log for each principal, loaded on first use.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use async_trait::async_trait;
use rockbot_core::Principal;
use rockbot_core::files::{DataFolder, name_of};
use rockbot_core::store::{ConversationLog, LogBatch, LogEntry, LogOffset, StoreError};

use super::log::{NAME, PrincipalLog, READERS_NAME};
use crate::ConversationLogOptions;
use crate::storage::blocking::{blocking, failed, invalid};
use crate::storage::folder::{file_name, open_folder};
use crate::storage::principal_cache::PrincipalCache;

/// A [`ConversationLog`] in a folder, which one process at a time can open.
///
/// An append resolves when the operating system has the lines: it survives `kill -9`, though not
/// power loss, and takes microseconds. A commit of an offset resolves when it is synced to disk.
/// Delivery is at-least-once: a reader whose offset is lost reads again, and misses nothing. One
/// append has at most a quarter of the maximum size of the log.
#[derive(Debug)]
pub struct FileConversationLog(Arc<LogFolder>);

#[derive(Debug)]
struct LogFolder {
    folder: DataFolder,
    options: ConversationLogOptions,
    /// `None` until the log is loaded.
    logs: PrincipalCache<Mutex<Option<PrincipalLog>>>,
}

impl FileConversationLog {
    /// Opens the log in `folder`, creating it if it is missing, with the default options.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is open already, here or in another process, or if it cannot be
    /// created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(folder, ConversationLogOptions::default())
    }

    /// Opens the log in `folder` with `options`.
    ///
    /// # Errors
    ///
    /// Returns an error under the same conditions as [`FileConversationLog::open`].
    pub fn open_with(folder: impl Into<PathBuf>, options: ConversationLogOptions) -> Result<Self, StoreError> {
        let is_ours = |name: &str| matches!(file_name(name), NAME | READERS_NAME);
        Ok(Self(Arc::new(LogFolder {
            folder: open_folder(folder.into(), "the conversation log", is_ours)?,
            options,
            logs: PrincipalCache::default(),
        })))
    }

    /// Runs `work` on the log of `principal`, on a blocking thread.
    async fn work<R: Send + 'static>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&mut PrincipalLog, &DataFolder) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let logs = self.0.clone();
        let principal = principal.clone();
        blocking(move || logs.work(&principal, work)).await
    }
}

impl LogFolder {
    /// Runs `work` on the log of `principal`, loading it first if needed.
    fn work<R>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&mut PrincipalLog, &DataFolder) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let slot = self.logs.get_or_default(principal);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let mut log = match slot.take().filter(|log| log.is_current(&self.folder)) {
            Some(log) => log,
            None => {
                let prefix = name_of(principal, "").map_err(|error| failed("the principal has no log", error))?;
                PrincipalLog::load(&self.folder, &prefix, self.options.max_bytes)?
            }
        };
        let result = work(&mut log, &self.folder);
        // After an error the state of the file is unknown, so the next call loads it again.
        *slot = result.is_ok().then_some(log);
        result
    }

    /// Appends on the calling thread, if the log is loaded, free and has room. Returns `true` if it
    /// did.
    ///
    /// The common case: a write into the page cache is cheaper than the way to a blocking thread and
    /// back.
    fn append_at_once(&self, principal: &Principal, lines: &[u8]) -> Result<bool, StoreError> {
        let slot = self.logs.get_or_default(principal);
        let mut slot = match slot.try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        let Some(log) = slot
            .as_mut()
            .filter(|log| log.is_current(&self.folder) && log.has_room_for(lines.len()))
        else {
            return Ok(false);
        };
        let result = log.append(&self.folder, lines);
        if result.is_err() {
            *slot = None;
        }
        result.map(|()| true)
    }

    /// Serializes `entries`, one line each.
    fn lines(&self, entries: &[LogEntry]) -> Result<Vec<u8>, StoreError> {
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)
                .map_err(|error| invalid("an entry of the conversation log cannot be serialized as JSON", error))?;
            lines.push(b'\n');
        }
        if lines.len() as u64 > self.options.max_bytes / 4 {
            let most = format!(
                "the conversation log takes at most {} bytes at once; shorten it",
                self.options.max_bytes / 4
            );
            return Err(invalid(most, format!("{} bytes", lines.len())));
        }
        Ok(lines)
    }
}

#[async_trait]
impl ConversationLog for FileConversationLog {
    async fn append(&self, principal: &Principal, entries: Vec<LogEntry>) -> Result<(), StoreError> {
        let lines = self.0.lines(&entries)?;
        if self.0.append_at_once(principal, &lines)? {
            return Ok(());
        }
        let append = move |log: &mut PrincipalLog, folder: &DataFolder| {
            if !log.has_room_for(lines.len()) {
                log.drop_older_half(folder)?;
            }
            log.append(folder, &lines)
        };
        self.work(principal, append).await
    }

    async fn read(&self, principal: &Principal, reader: &str, limit: usize) -> Result<LogBatch, StoreError> {
        let reader = reader.to_owned();
        self.work(principal, move |log, folder| log.read(folder, &reader, limit))
            .await
    }

    async fn commit(&self, principal: &Principal, reader: &str, offset: LogOffset) -> Result<(), StoreError> {
        let reader = reader.to_owned();
        self.work(principal, move |log, folder| log.commit(folder, &reader, offset))
            .await
    }

    async fn trim(&self, principal: &Principal, offset: LogOffset) -> Result<(), StoreError> {
        self.work(principal, move |log, folder| log.trim(folder, offset.0))
            .await
    }
}
