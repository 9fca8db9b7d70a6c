//! The folder that all sessions share, and how a damaged document is met.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rockbot_core::files::{DataFolder, FileError, without_bom};
use rockbot_core::store::StoreError;
use rockbot_core::{Digest, Principal, SessionId};

use super::entry::{self, Entry};
use super::layout::{self, Key};
use super::options::ConversationOptions;

/// The longest document, and the longest line of a log, that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) folder: DataFolder,
    pub(super) options: ConversationOptions,
    /// The names of documents that other programs wrote, as they stood when the folder was opened.
    theirs: Mutex<HashMap<SessionId, String>>,
    damaged: AtomicU64,
    epochs: AtomicU64,
}

/// A document as it was read.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) bytes: Vec<u8>,
    pub(super) entries: Vec<Entry>,
}

impl Document {
    /// What a [`Folded`](super::session::Folded) line names it by.
    pub(super) fn digest(&self) -> Digest {
        Digest::of([&self.bytes])
    }

    pub(super) fn parse(&self) -> serde_json::Result<Vec<Entry>> {
        entry::parse(without_bom(&self.bytes))
    }
}

impl Shelf {
    pub(super) fn new(folder: DataFolder, options: ConversationOptions) -> Self {
        Self {
            folder,
            options,
            theirs: Mutex::default(),
            damaged: AtomicU64::new(0),
            epochs: AtomicU64::new(0),
        }
    }

    pub(super) fn theirs(&self) -> MutexGuard<'_, HashMap<SessionId, String>> {
        // Nothing that can panic runs under the lock.
        self.theirs.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(super) fn document(&self, (principal, session): &Key, stem: &str) -> Result<Option<Document>, StoreError> {
        if let Some(document) = self.read(&layout::document(stem))? {
            return Ok(Some(document));
        }
        self.theirs_of(principal, session)
            .map_or(Ok(None), |name| self.read(&name))
    }

    /// The name of another program's document of a session.
    pub(super) fn theirs_of(&self, principal: &Principal, session: &SessionId) -> Option<String> {
        self.theirs()
            .get(session)
            .filter(|_| layout::is_local(principal))
            .cloned()
    }

    /// Reads a document. One that can never be read is set aside.
    fn read(&self, name: &str) -> Result<Option<Document>, StoreError> {
        let bytes = match self.folder.read(name, MAX_BYTES) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) if error.is_damage() => return self.set_aside(name, &error).map(|()| None),
            Err(error) => return Err(failed("a conversation cannot be read", error)),
        };
        match entry::parse(without_bom(&bytes)) {
            Ok(entries) => Ok(Some(Document { bytes, entries })),
            Err(error) => self.set_aside(name, &error).map(|()| None),
        }
    }

    /// Gives each line of a log to `each`. Returns how many lines were skipped since they are too long.
    pub(super) fn read_log(&self, name: &str, each: impl FnMut(&[u8])) -> Result<u64, StoreError> {
        match self.folder.read_lines(name, MAX_BYTES, each) {
            Ok(overlong) => Ok(overlong.unwrap_or(0)),
            Err(error) if error.is_damage() => self.set_aside(name, &error).map(|()| 0),
            Err(error) => Err(failed("a conversation cannot be read", error)),
        }
    }

    fn set_aside(&self, name: &str, error: &dyn Display) -> Result<(), StoreError> {
        let aside = self.folder.set_aside(name);
        let aside = aside.map_err(|error| failed("a damaged conversation cannot be set aside", error))?;
        self.count_damage(1);
        let folder = self.folder.path().display();
        tracing::warn!(%folder, file = name, set_aside_as = aside, %error, "a conversation is damaged; it begins anew");
        Ok(())
    }
}

pub(super) fn failed(context: &str, error: FileError) -> StoreError {
    StoreError::caused_by(context, error)
}
