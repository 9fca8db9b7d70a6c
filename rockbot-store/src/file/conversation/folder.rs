//! The folder of all sessions: reading documents and logs, and the quarantine of damaged files.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rockbot_core::files::{DataFolder, FileError, without_bom};
use rockbot_core::store::StoreError;
use rockbot_core::{Digest, Principal, SessionId};

use super::entry::{self, StoredEntry};
use super::layout::{self, SessionKey};
use super::options::ConversationOptions;

/// Maximum size of a document, and of a line of a log, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The files of all sessions, with the options of the memory.
#[derive(Debug)]
pub(super) struct ConversationFolder {
    pub(super) files: DataFolder,
    pub(super) options: ConversationOptions,
    /// The names of foreign documents at the time when the folder was opened.
    foreign: Mutex<HashMap<SessionId, String>>,
    /// Number of quarantined files and skipped lines.
    damaged: AtomicU64,
    /// The next epoch of a session.
    epochs: AtomicU64,
}

/// A document that was read.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) bytes: Vec<u8>,
    pub(super) entries: Vec<StoredEntry>,
}

impl Document {
    /// Returns the digest that a [`CompactionMarker`](super::session::CompactionMarker) names the
    /// document by.
    pub(super) fn digest(&self) -> Digest {
        Digest::of([&self.bytes])
    }

    /// Parses the entries once more, for a load that starts over at a marker.
    pub(super) fn parse(&self) -> serde_json::Result<Vec<StoredEntry>> {
        entry::parse(without_bom(&self.bytes))
    }
}

impl ConversationFolder {
    /// Creates the folder around its files.
    pub(super) fn new(files: DataFolder, options: ConversationOptions) -> Self {
        Self {
            files,
            options,
            foreign: Mutex::default(),
            damaged: AtomicU64::new(0),
            epochs: AtomicU64::new(0),
        }
    }

    pub(super) fn foreign(&self) -> MutexGuard<'_, HashMap<SessionId, String>> {
        // No code that can panic runs under the lock.
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number that no session had before. A compaction that holds an old number works on
    /// files that were cleared.
    pub(super) fn next_epoch(&self) -> u64 {
        // Relaxed: the number only has to be unique; it is compared under the lock of its session.
        self.epochs.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    pub(super) fn count_damage(&self, count: u64) {
        self.damaged.fetch_add(count, Ordering::Relaxed);
    }

    /// Reads the document of a session: its own, or else a foreign one.
    pub(super) fn document(
        &self,
        (principal, session): &SessionKey,
        stem: &str,
    ) -> Result<Option<Document>, StoreError> {
        if let Some(document) = self.read(&layout::document(stem))? {
            return Ok(Some(document));
        }
        self.foreign_of(principal, session)
            .map_or(Ok(None), |name| self.read(&name))
    }

    /// Returns the name of the foreign document of a session.
    pub(super) fn foreign_of(&self, principal: &Principal, session: &SessionId) -> Option<String> {
        self.foreign()
            .get(session)
            .filter(|_| layout::is_local(principal))
            .cloned()
    }

    /// Reads a document. A damaged one is quarantined, and the session starts empty; other errors may
    /// be transient and are returned.
    fn read(&self, name: &str) -> Result<Option<Document>, StoreError> {
        let bytes = match self.files.read(name, MAX_BYTES) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) if error.is_damage() => return self.quarantine(name, &error).map(|()| None),
            Err(error) => return Err(failed("a conversation cannot be read", error)),
        };
        match entry::parse(without_bom(&bytes)) {
            Ok(entries) => Ok(Some(Document { bytes, entries })),
            Err(error) => self.quarantine(name, &error).map(|()| None),
        }
    }

    /// Calls `each` with every line of a log. Returns how many lines were skipped because they are
    /// too long.
    pub(super) fn read_log(&self, name: &str, each: impl FnMut(&[u8])) -> Result<u64, StoreError> {
        match self.files.read_lines(name, MAX_BYTES, each) {
            Ok(overlong) => Ok(overlong.unwrap_or(0)),
            Err(error) if error.is_damage() => self.quarantine(name, &error).map(|()| 0),
            Err(error) => Err(failed("a conversation cannot be read", error)),
        }
    }

    /// Moves a damaged file out of the way, where an operator can inspect it, and counts it.
    fn quarantine(&self, name: &str, error: &dyn Display) -> Result<(), StoreError> {
        let moved = self.files.quarantine(name);
        let moved = moved.map_err(|error| failed("a damaged conversation cannot be quarantined", error))?;
        self.count_damage(1);
        let folder = self.files.path().display();
        tracing::warn!(%folder, file = name, quarantined_as = moved, %error, "conversation file is damaged; it was quarantined and the conversation starts empty");
        Ok(())
    }
}

/// Creates the error of a failed operation on a file.
pub(super) fn failed(context: &str, error: FileError) -> StoreError {
    StoreError::caused_by(context, error)
}
