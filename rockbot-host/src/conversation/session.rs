//! One session: its window in memory, and its log.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use rockbot_core::files::LineFile;
use rockbot_core::store::{ConversationTurn, StoreError, StoreErrorKind};
use rockbot_core::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use super::entry::{self, Entry};
use super::folder::{Document, Shelf, failed};
use super::layout::{self, Key};
use crate::journal::{Durability, GroupCommit};

/// The most text that a session keeps, and that one append may add, in bytes.
const MAX_TEXT: usize = 8 << 20;

/// A log is folded when it has grown by this many bytes: folding costs two syncs of the disk.
pub(super) const FOLD_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) stem: String,
    entries: VecDeque<Entry>,
    /// Bytes of text in `entries`.
    text: usize,
    /// Open while it is written to often.
    pub(super) log: Option<LineFile>,
    /// Whether the log has what is not in the document.
    pub(super) is_ahead: bool,
    /// How long the log may become before it is folded.
    pub(super) fold_at: u64,
    /// Whether the log has lines that cannot be read.
    pub(super) is_damaged: bool,
    /// Whether somebody folds this session, or was asked to.
    pub(super) is_folding: bool,
    /// Changes when the session is cleared or read again.
    pub(super) epoch: u64,
    commit: Arc<GroupCommit>,
}

/// Stands in a log when everything before it is about to be in the document with this digest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Folded {
    pub(super) folded: Digest,
}

/// What is left to do when an append is in the file.
#[derive(Debug)]
pub(super) struct Appended {
    pub(super) opened_log: bool,
    pub(super) wants_fold: bool,
    /// What to wait for when the disk must have it.
    pub(super) to_sync: Option<(Arc<GroupCommit>, File)>,
}

impl Session {
    /// Reads what is on disk.
    pub(super) fn load(shelf: &Shelf, key: &Key) -> Result<Self, StoreError> {
        Self::load_with(shelf, key, true)
    }

    /// Reads what is on disk, where it is known whether there is a log.
    pub(super) fn load_with(shelf: &Shelf, key: &Key, has_log: bool) -> Result<Self, StoreError> {
        let stem = layout::stem(key).map_err(|error| StoreError::caused_by("the session has no file", error))?;
        let mut document = shelf.document(key, &stem)?;
        let mut session = Self {
            stem,
            entries: VecDeque::new(),
            text: 0,
            log: None,
            is_ahead: false,
            fold_at: FOLD_BYTES,
            is_damaged: false,
            is_folding: false,
            epoch: shelf.next_epoch(),
            commit: Arc::default(),
        };
        let entries = document.as_mut().map(|document| std::mem::take(&mut document.entries));
        session.admit(entries.unwrap_or_default(), shelf.options.window);
        if has_log {
            session.replay(shelf, document.as_ref())?;
        }
        Ok(session)
    }

    /// Takes in the lines of the log.
    fn replay(&mut self, shelf: &Shelf, document: Option<&Document>) -> Result<(), StoreError> {
        let (window, mut skipped, mut digest) = (shelf.options.window, 0, None);
        let overlong = shelf.read_log(&layout::log(&self.stem), |line| {
            self.is_ahead = true;
            if line.starts_with(b"[") {
                match entry::parse(line) {
                    Ok(entries) => self.admit_new(entries, window),
                    Err(_) => skipped += 1,
                }
            } else if let Ok(Folded { folded }) = serde_json::from_slice(line) {
                let document = document.filter(|document| folded == *digest.get_or_insert_with(|| document.digest()));
                if let Some(document) = document {
                    self.restart(document, window);
                }
            } else {
                skipped += 1;
            }
        })?;
        skipped += overlong;
        if skipped > 0 {
            self.is_damaged = true;
            shelf.count_damage(skipped);
            tracing::warn!(
                lines = skipped,
                session = self.stem,
                "a conversation has lines that cannot be read"
            );
        }
        Ok(())
    }

    /// Everything so far is in the document already.
    fn restart(&mut self, document: &Document, window: usize) {
        self.entries.clear();
        self.text = 0;
        // It could be parsed once.
        self.admit(document.parse().unwrap_or_default(), window);
    }

    pub(super) fn newest(&self) -> Option<Timestamp> {
        self.entries.iter().map(|entry| entry.said.timestamp).max()
    }

    pub(super) fn recent(&self, limit: usize) -> Vec<ConversationTurn> {
        let from = self.entries.len().saturating_sub(limit);
        self.entries.range(from..).map(|entry| entry.said.clone()).collect()
    }

    /// The window as a document.
    pub(super) fn to_document(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.entries)
    }

    pub(super) fn append(
        &mut self,
        shelf: &Shelf,
        entries: Vec<ConversationTurn>,
    ) -> Result<Option<Appended>, StoreError> {
        let new: Vec<_> = entries
            .into_iter()
            .filter(|said| !self.knows(said))
            .map(Entry::from)
            .collect();
        if new.is_empty() {
            return Ok(None);
        }
        let line = line(&new)?;
        let opened_log = self.log.is_none();
        let fold_at = self.fold_at;
        let log = self.open_log(shelf)?;
        let written = log.append(&line);
        written.map_err(|error| failed("a conversation cannot be written", error))?;
        let is_long = log.len() >= fold_at;
        let to_sync = match shelf.options.durability {
            Durability::Process => None,
            Durability::Synced => Some(
                log.handle()
                    .map_err(|error| failed("a conversation cannot be synced", error))?,
            ),
        };
        let window = shelf.options.window;
        self.is_ahead = true;
        self.admit(new, window);
        let wants_fold = is_long && !self.is_folding;
        self.is_folding |= wants_fold;
        Ok(Some(Appended {
            opened_log,
            wants_fold,
            to_sync: to_sync.map(|file| (self.commit.clone(), file)),
        }))
    }

    pub(super) fn open_log(&mut self, shelf: &Shelf) -> Result<&mut LineFile, StoreError> {
        let log = match self.log.take() {
            Some(log) => log,
            None => open_log(shelf, &layout::log(&self.stem))?,
        };
        Ok(self.log.insert(log))
    }

    /// The files are gone.
    pub(super) fn forget(&mut self, shelf: &Shelf) {
        self.entries.clear();
        (self.text, self.log, self.fold_at) = (0, None, FOLD_BYTES);
        (self.is_ahead, self.is_damaged) = (false, false);
        self.epoch = shelf.next_epoch();
    }

    fn knows(&self, said: &ConversationTurn) -> bool {
        self.entries.iter().any(|known| known.said.turn == said.turn)
    }

    fn admit_new(&mut self, mut entries: Vec<Entry>, window: usize) {
        entries.retain(|entry| !self.knows(&entry.said));
        self.admit(entries, window);
    }

    fn admit(&mut self, entries: Vec<Entry>, window: usize) {
        self.text += text(&entries);
        match self.entries.is_empty() {
            true => self.entries = entries.into(),
            false => self.entries.extend(entries),
        }
        while self.entries.len() > window || self.text > MAX_TEXT {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.text -= oldest.said.content.len();
        }
    }
}

fn open_log(shelf: &Shelf, name: &str) -> Result<LineFile, StoreError> {
    let failed = |error| failed("the log of a conversation cannot be opened", error);
    let log = shelf.folder.lines(name).map_err(failed)?;
    if log.is_empty() && shelf.options.durability == Durability::Synced {
        shelf.folder.sync(name).map_err(failed)?;
    }
    Ok(log)
}

fn line(entries: &[Entry]) -> Result<Vec<u8>, StoreError> {
    let len = text(entries);
    if len > MAX_TEXT {
        let context = "a conversation takes no more than 8 MiB of text at once; shorten it";
        return Err(StoreError::new(StoreErrorKind::Invalid, context).with_source(format!("{len} bytes")));
    }
    let mut line = Vec::with_capacity(len + len / 8 + 192 * entries.len());
    serde_json::to_writer(&mut line, entries).map_err(|error| {
        StoreError::new(StoreErrorKind::Invalid, "an entry cannot be written as JSON").with_source(error)
    })?;
    line.push(b'\n');
    Ok(line)
}

fn text(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| entry.said.content.len()).sum()
}
