//! The log of routing decisions and their results, for tuning the rules of a tier selector.

mod entry;
mod file;
mod preview;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use file::LogFile;

pub use entry::{RoutingEntry, RoutingResult};

/// Number of decisions that are kept.
const MAX_ENTRIES: usize = 200;

/// A bounded log of the newest 200 routing decisions, in memory or in a file such as
/// `tier-routing-log.jsonl`.
///
/// A file has one JSON line per decision and is readable by its owner only. It has at most 200
/// lines: the oldest make room, by a rewrite of the file. A host buffers the lines of a second,
/// up to 32, and writes them together; these are lost if the process is killed.
///
/// A line holds the first 150 characters of the text, so that a decision can be judged, with
/// words that look like keys redacted. [`RoutingLog::without_previews`] leaves the text out.
///
/// Writing blocks on the file system for a short time; async code should call it where that does
/// no harm.
///
/// # Examples
///
/// ```
/// use rockbot_core::{Clock, SystemClock};
/// use rockbot_core::chat::ModelTier;
/// use rockbot_core::turn::TierDecision;
/// use rockbot_host::routing::{RoutingEntry, RoutingLog};
///
/// # fn main() -> std::io::Result<()> {
/// # let folder = tempfile::tempdir()?;
/// let log = RoutingLog::new(folder.path().join("tier-routing-log.jsonl"));
/// let text = "Who was Ada Lovelace?";
/// let decision = TierDecision::new(ModelTier::Low, 0.05).because("it is short");
/// log.append(RoutingEntry::new(SystemClock.now(), "user-message", text, &decision))?;
///
/// assert_eq!(log.entries()?[0].prompt_preview, text);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RoutingLog {
    storage: LogStorage,
    previews: bool,
}

/// The storage of a log.
#[derive(Debug)]
enum LogStorage {
    Memory(Mutex<VecDeque<RoutingEntry>>),
    File(LogFile),
}

impl RoutingLog {
    /// Creates a log in the file `path`, which is created with the first line.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            storage: LogStorage::File(LogFile::new(path.into())),
            previews: true,
        }
    }

    /// Creates a log in memory, which ends with the process.
    pub fn in_memory() -> Self {
        Self {
            storage: LogStorage::Memory(Mutex::default()),
            previews: true,
        }
    }

    /// Returns the log without previews of the texts. The reasons still name the keywords that were
    /// found.
    #[must_use]
    pub fn without_previews(mut self) -> Self {
        self.previews = false;
        self
    }

    /// Appends a decision and writes it, together with the buffered ones.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written; the lines are then dropped, so that they
    /// cannot pile up.
    pub fn append(&self, entry: RoutingEntry) -> io::Result<()> {
        self.buffer(entry)?;
        self.write()
    }

    /// Writes the buffered decisions.
    pub(super) fn write(&self) -> io::Result<()> {
        match &self.storage {
            LogStorage::File(file) => file.write(),
            LogStorage::Memory(_) => Ok(()),
        }
    }

    /// Buffers a decision. Returns `true` if it is the first in the buffer, which the caller then has
    /// to write soon.
    pub(super) fn buffer(&self, mut entry: RoutingEntry) -> io::Result<bool> {
        if !self.previews {
            entry.prompt_preview.clear();
        }
        match &self.storage {
            LogStorage::File(file) => file.buffer(&entry),
            LogStorage::Memory(entries) => {
                let mut entries = lock(entries);
                if entries.len() == MAX_ENTRIES {
                    entries.pop_front();
                }
                entries.push_back(entry);
                Ok(false)
            }
        }
    }

    /// Returns the newest decisions, at most 200, oldest first. Unreadable lines are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read. A missing file is an empty log.
    pub fn entries(&self) -> io::Result<Vec<RoutingEntry>> {
        match &self.storage {
            LogStorage::File(file) => file.entries(),
            LogStorage::Memory(entries) => Ok(lock(entries).iter().cloned().collect()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that can panic runs under the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
