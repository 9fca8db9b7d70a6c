//! The folder that all sessions share, and how a damaged document is met.

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

/// The longest document, and the longest line of a log, that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct ConversationFolder {
    pub(super) files: DataFolder,
    pub(super) options: ConversationOptions,
    /// The names of documents that other programs wrote, as they stood when the folder was opened.
    foreign: Mutex<HashMap<SessionId, String>>,
    damaged: AtomicU64,
    epochs: AtomicU64,
}

/// A document as it was read.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) bytes: Vec<u8>,
    pub(super) entries: Vec<StoredEntry>,
}

impl Document {
    /// What a [`Folded`](super::session::Folded) line names it by.
    pub(super) fn digest(&self) -> Digest {
        Digest::of([&self.bytes])
    }

    pub(super) fn parse(&self) -> serde_json::Result<Vec<StoredEntry>> {
        entry::parse(without_bom(&self.bytes))
    }
}

impl ConversationFolder {
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
        // Nothing that can panic runs under the lock.
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no session had before: who holds an old one works on something that is gone.
    pub(super) fn next_epoch(&self) -> u64 {
        self.epochs.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    pub(super) fn count_damage(&self, count: u64) {
        self.damaged.fetch_add(count, Ordering::Relaxed);
    }

    /// The document of a session: ours, or else another program's.
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

    /// The name of another program's document of a session.
    pub(super) fn foreign_of(&self, principal: &Principal, session: &SessionId) -> Option<String> {
        self.foreign()
            .get(session)
            .filter(|_| layout::is_local(principal))
            .cloned()
    }

    /// Reads a document. One that can never be read is set aside.
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

    /// Gives each line of a log to `each`. Returns how many lines were skipped since they are too long.
    pub(super) fn read_log(&self, name: &str, each: impl FnMut(&[u8])) -> Result<u64, StoreError> {
        match self.files.read_lines(name, MAX_BYTES, each) {
            Ok(overlong) => Ok(overlong.unwrap_or(0)),
            Err(error) if error.is_damage() => self.quarantine(name, &error).map(|()| 0),
            Err(error) => Err(failed("a conversation cannot be read", error)),
        }
    }

    fn quarantine(&self, name: &str, error: &dyn Display) -> Result<(), StoreError> {
        let aside = self.files.set_aside(name);
        let aside = aside.map_err(|error| failed("a damaged conversation cannot be set aside", error))?;
        self.count_damage(1);
        let folder = self.files.path().display();
        tracing::warn!(%folder, file = name, set_aside_as = aside, %error, "a conversation is damaged; it begins anew");
        Ok(())
    }
}

pub(super) fn failed(context: &str, error: FileError) -> StoreError {
    StoreError::caused_by(context, error)
}
