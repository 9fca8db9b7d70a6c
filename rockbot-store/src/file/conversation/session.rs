//! A session: its window in memory and its log on disk.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rockbot_core::files::{FileHandle, LineFile};
use rockbot_core::store::{ConversationPage, ConversationQuery, ConversationTurn, StoreError, StoreErrorKind};
use rockbot_core::support::json;
use rockbot_core::{Digest, Timestamp, TurnId};
use serde::{Deserialize, Serialize};

use super::entry::{self, StoredEntry};
use super::folder::{ConversationFolder, Document, failed};
use super::layout::{self, SessionKey};
use crate::file::journal::{Durability, GroupCommit};

/// Maximum text of a session, and of one append, in bytes.
const MAX_TEXT: usize = 8 << 20;

/// Growth of a log in bytes before it is compacted. Compaction costs two syncs of the disk, so it
/// should be rare.
pub(super) const COMPACT_AFTER_BYTES: u64 = 4 << 20;

/// A session that was read. It is always used under the lock of its slot.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) stem: String,
    /// The window, oldest first.
    entries: VecDeque<StoredEntry>,
    /// Bytes of text in `entries`.
    text: usize,
    /// The log while it is open; see the open logs for their bound.
    pub(super) log: Option<LineFile>,
    /// `true` if the log has entries that the document does not have.
    pub(super) is_ahead: bool,
    /// Length of the log in bytes that starts its compaction.
    pub(super) compact_at: u64,
    /// `true` if the log has unreadable lines. A copy of the log is made before it is shortened.
    pub(super) is_damaged: bool,
    /// `true` while a compaction of this session is scheduled or runs.
    pub(super) is_compacting: bool,
    /// The epoch, which changes when the session is cleared or read again.
    pub(super) epoch: u64,
    /// Turns in the log that could not be synced. Written again, they are appended again: the
    /// system may have forgotten the bytes that it could not write.
    unsynced: BTreeSet<TurnId>,
    /// `true` if the name of the log could not be synced.
    pub(super) is_name_unsynced: bool,
    commit: Arc<GroupCommit>,
}

/// The marker in a log after the lines that a document with this digest is about to contain.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CompactionMarker {
    #[serde(rename = "folded")]
    pub(super) document: Digest,
}

/// The work that is left after an append, done without the lock of the session.
#[derive(Debug)]
pub(super) struct Appended {
    pub(super) opened_log: bool,
    pub(super) wants_compaction: bool,
    /// The sync to wait for if the append has to reach the disk.
    pub(super) to_sync: Option<PendingSync>,
}

/// A sync of appended turns.
#[derive(Debug)]
pub(super) struct PendingSync {
    pub(super) commit: Arc<GroupCommit>,
    pub(super) file: FileHandle,
    pub(super) turns: Vec<TurnId>,
}

impl Session {
    /// Reads a session from its files.
    pub(super) fn load(folder: &ConversationFolder, key: &SessionKey) -> Result<Self, StoreError> {
        Self::load_with(folder, key, true)
    }

    /// Reads a session from its files; without a log one lookup in the folder is saved.
    pub(super) fn load_with(folder: &ConversationFolder, key: &SessionKey, has_log: bool) -> Result<Self, StoreError> {
        let stem = layout::stem(key).map_err(|error| StoreError::caused_by("the session has no file", error))?;
        let mut document = folder.document(key, &stem)?;
        let mut session = Self {
            stem,
            entries: VecDeque::new(),
            text: 0,
            log: None,
            is_ahead: false,
            compact_at: COMPACT_AFTER_BYTES,
            is_damaged: false,
            is_compacting: false,
            epoch: folder.next_epoch(),
            unsynced: BTreeSet::new(),
            is_name_unsynced: false,
            commit: Arc::default(),
        };
        let entries = document.as_mut().map(|document| std::mem::take(&mut document.entries));
        session.admit(entries.unwrap_or_default(), folder.options.window);
        if has_log {
            session.replay(folder, document.as_ref())?;
        }
        Ok(session)
    }

    /// Replays the log on top of the document.
    ///
    /// Turns that are known already are skipped, so lines that a crash left both in the log and in
    /// the document count once.
    fn replay(&mut self, folder: &ConversationFolder, document: Option<&Document>) -> Result<(), StoreError> {
        let window = folder.options.window;
        let mut skipped = 0;
        let mut digest = None;
        let overlong = folder.read_log(&layout::log(&self.stem), |line| {
            self.is_ahead = true;
            if line.starts_with(b"[") {
                match entry::parse(line) {
                    Ok(entries) => self.admit_new(entries, window),
                    Err(_) => skipped += 1,
                }
            } else if let Ok(CompactionMarker { document: marked }) = serde_json::from_slice(line) {
                // A marker without its document is left of a compaction that did not get there.
                let document = document.filter(|document| marked == *digest.get_or_insert_with(|| document.digest()));
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
            folder.count_damage(skipped);
            tracing::warn!(
                lines = skipped,
                session = self.stem,
                "conversation has unreadable lines; they are skipped"
            );
        }
        Ok(())
    }

    /// Starts over with the document, which has everything that was replayed so far.
    fn restart(&mut self, document: &Document, window: usize) {
        self.entries.clear();
        self.text = 0;
        // It was parsed before, so this cannot fail.
        self.admit(document.parse().unwrap_or_default(), window);
    }

    /// Returns the time of the newest entry.
    pub(super) fn newest(&self) -> Option<Timestamp> {
        self.entries.iter().map(|entry| entry.message.timestamp).max()
    }

    /// Returns the newest `limit` messages, oldest first.
    pub(super) fn recent(&self, limit: usize) -> Vec<ConversationTurn> {
        let from = self.entries.len().saturating_sub(limit);
        self.entries.range(from..).map(|entry| entry.message.clone()).collect()
    }

    /// Returns a page of the window.
    pub(super) fn page(&self, query: &ConversationQuery) -> ConversationPage {
        query.select(self.entries.iter().rev().map(|entry| &entry.message))
    }

    /// Serializes the window as a document.
    pub(super) fn to_document(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.entries)
    }

    /// Appends entries to the log, then to the window. Entries of known turns are skipped, which
    /// makes a repeated append idempotent; returns `None` if no entry is new.
    ///
    /// # Errors
    ///
    /// Returns an error if the log cannot be written; the window is then unchanged.
    pub(super) fn append(
        &mut self,
        folder: &ConversationFolder,
        entries: Vec<ConversationTurn>,
    ) -> Result<Option<Appended>, StoreError> {
        let new: Vec<_> = entries
            .into_iter()
            .filter(|message| !self.knows(message) || self.unsynced.contains(&message.turn))
            .map(StoredEntry::from)
            .collect();
        if new.is_empty() {
            return Ok(None);
        }
        let line = line(&new)?;
        let commit = self.commit.clone();
        let opened_log = self.log.is_none();
        let compact_at = self.compact_at;
        let log = self.open_log(folder)?;
        // Taken before the write, since nothing after it may fail: the window shows the entries of
        // the log.
        let to_sync = match folder.options.durability {
            Durability::Process => None,
            Durability::Synced => Some(PendingSync {
                commit,
                file: log
                    .handle()
                    .map_err(|error| failed("a conversation cannot be synced", error))?,
                turns: new.iter().map(|entry| entry.message.turn.clone()).collect(),
            }),
        };
        let written = log.append(&line);
        written.map_err(|error| failed("a conversation cannot be written", error))?;
        let is_long = log.len() >= compact_at;
        let window = folder.options.window;
        self.is_ahead = true;
        self.admit_new(new, window);
        let wants_compaction = is_long && !self.is_compacting;
        self.is_compacting |= wants_compaction;
        Ok(Some(Appended {
            opened_log,
            wants_compaction,
            to_sync,
        }))
    }

    /// Returns the log, which is opened if it is closed.
    pub(super) fn open_log(&mut self, folder: &ConversationFolder) -> Result<&mut LineFile, StoreError> {
        let log = match self.log.take() {
            Some(log) => log,
            None => {
                let log = open_log(folder, &layout::log(&self.stem), self.is_name_unsynced)?;
                self.is_name_unsynced = false;
                log
            }
        };
        Ok(self.log.insert(log))
    }

    /// Records whether the entries of these turns are on the disk.
    pub(super) fn mark_synced(&mut self, turns: Vec<TurnId>, is_synced: bool) {
        if is_synced {
            self.unsynced.retain(|turn| !turns.contains(turn))
        } else {
            self.unsynced.extend(turns)
        }
        let entries = &self.entries;
        self.unsynced
            .retain(|turn| entries.iter().any(|known| known.message.turn == *turn));
    }

    /// Resets the session after its files were removed.
    pub(super) fn forget(&mut self, folder: &ConversationFolder) {
        self.entries.clear();
        (self.text, self.log, self.compact_at) = (0, None, COMPACT_AFTER_BYTES);
        (self.is_ahead, self.is_damaged) = (false, false);
        self.epoch = folder.next_epoch();
    }

    fn knows(&self, message: &ConversationTurn) -> bool {
        self.entries.iter().any(|known| known.message.turn == message.turn)
    }

    fn admit_new(&mut self, mut entries: Vec<StoredEntry>, window: usize) {
        entries.retain(|entry| !self.knows(&entry.message));
        self.admit(entries, window);
    }

    /// Adds entries and drops the oldest entries beyond the limits of the window.
    fn admit(&mut self, entries: Vec<StoredEntry>, window: usize) {
        self.text += text(&entries);
        if self.entries.is_empty() {
            self.entries = entries.into()
        } else {
            self.entries.extend(entries)
        }
        while self.entries.len() > window || self.text > MAX_TEXT {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.text -= oldest.message.text_len();
        }
    }
}

fn open_log(folder: &ConversationFolder, name: &str, is_unsynced: bool) -> Result<LineFile, StoreError> {
    let failed = |error| failed("the log of a conversation cannot be opened", error);
    let log = folder.files.lines(name).map_err(failed)?;
    if (is_unsynced || log.is_empty()) && folder.options.durability == Durability::Synced {
        folder.files.sync(name).map_err(failed)?;
    }
    Ok(log)
}

fn line(entries: &[StoredEntry]) -> Result<Vec<u8>, StoreError> {
    let len = text(entries);
    if len > MAX_TEXT {
        let context = "a conversation takes no more than 8 MiB of text at once; shorten it";
        return Err(StoreError::new(StoreErrorKind::Invalid, context).with_cause(format!("{len} bytes")));
    }
    let mut line = Vec::with_capacity(len + len / 8 + 192 * entries.len());
    json::write(&mut line, entries).map_err(|error| {
        StoreError::new(StoreErrorKind::Invalid, "an entry cannot be written as JSON").with_cause(error)
    })?;
    line.push(b'\n');
    Ok(line)
}

fn text(entries: &[StoredEntry]) -> usize {
    entries.iter().map(|entry| entry.message.text_len()).sum()
}
