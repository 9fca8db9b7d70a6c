//! Log compaction: the window of a session becomes its document, and its log begins again.
//!
//! The steps, and the state that a crash after each of them leaves:
//!
//! 1. A marker with the digest of the new document is appended to the log. The old document and
//!    the whole log are valid; a load finds no document with that digest and ignores the marker.
//! 2. The new document is written to a temporary file and synced, then renamed over the old
//!    document. It has the digest of the marker, so a load drops the lines before the marker and
//!    continues with the document.
//! 3. The log is shortened to the lines after the marker.
//!
//! Appends do not wait for the disk meanwhile: the session is locked only to take the snapshot,
//! to rename the document and to shorten the log. An epoch detects that the session was cleared
//! in between.

use std::sync::PoisonError;

use rockbot_core::Digest;
use rockbot_core::files::{Draft, LineFile};
use rockbot_core::store::{StoreError, StoreErrorKind};

use super::folder::{ConversationFolder, failed};
use super::layout;
use super::session::{COMPACT_AFTER_BYTES, CompactionMarker, Session};
use super::session_cache::Slot;
use crate::file::journal::Durability;

/// The window of a session at the start of a compaction.
struct WindowSnapshot {
    stem: String,
    epoch: u64,
    document: Vec<u8>,
    /// The length of the log up to the end of the marker, where later lines begin.
    offset: u64,
}

/// Compacts the log of a cached session into its document, unless the document is up to date.
pub(super) fn compact(folder: &ConversationFolder, slot: &Slot) -> Result<(), StoreError> {
    let result = compact_steps(folder, slot);
    let mut session = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(session) = session.as_mut() {
        session.is_compacting = false;
        session.is_ahead |= result.is_err();
        session.is_name_unsynced |= result.is_err();
        // After a failure, too, the log grows by as much again before the next attempt: a full disk is
        // no reason to try at every append.
        let without_log = if result.is_err() { session.compact_at } else { 0 };
        session.compact_at = session.log.as_ref().map_or(without_log, LineFile::len) + COMPACT_AFTER_BYTES;
        // Closed here, so that the next append opens the log and registers it with the open logs.
        session.log = None;
    }
    result
}

fn compact_steps(folder: &ConversationFolder, slot: &Slot) -> Result<(), StoreError> {
    let Some(snapshot) = locked(slot, None, |session| begin(folder, session))?.flatten() else {
        return Ok(());
    };
    let name = layout::document(&snapshot.stem);
    let failed = |error| failed("the log of a conversation cannot be compacted into its document", error);
    let draft = folder.files.draft(&name, &snapshot.document).map_err(failed)?;
    let published = locked(slot, Some(snapshot.epoch), |_| Draft::publish(draft).map_err(failed))?;
    if published.is_some() {
        folder.files.sync(&name).map_err(failed)?;
        locked(slot, Some(snapshot.epoch), |session| finish(folder, session, &snapshot))?;
    }
    Ok(())
}

/// Runs `work` on the session under its lock. Returns `None` if the session has been evicted, or
/// has another epoch: then it was cleared, and the compaction must not bring it back.
fn locked<R>(
    slot: &Slot,
    epoch: Option<u64>,
    work: impl FnOnce(&mut Session) -> Result<R, StoreError>,
) -> Result<Option<R>, StoreError> {
    let mut session = slot.lock().unwrap_or_else(PoisonError::into_inner);
    let session = session
        .as_mut()
        .filter(|session| epoch.is_none_or(|epoch| session.epoch == epoch));
    session.map(work).transpose()
}

/// Takes the snapshot and appends its marker to the log, both under the lock, so that no append
/// comes between them.
fn begin(folder: &ConversationFolder, session: &mut Session) -> Result<Option<WindowSnapshot>, StoreError> {
    if !session.is_ahead {
        return Ok(None);
    }
    let json = |error: serde_json::Error| {
        StoreError::new(StoreErrorKind::Invalid, "a conversation cannot be written as JSON").with_cause(error)
    };
    let document = session.to_document().map_err(json)?;
    let marker = CompactionMarker {
        document: Digest::of([&document]),
    };
    let mut line = serde_json::to_vec(&marker).map_err(json)?;
    line.push(b'\n');
    let log = session.open_log(folder)?;
    log.append(&line)
        .map_err(|error| failed("a conversation cannot be written", error))?;
    let offset = log.len();
    session.is_ahead = false;
    Ok(Some(WindowSnapshot {
        stem: session.stem.clone(),
        epoch: session.epoch,
        document,
        offset,
    }))
}

/// Removes the lines from the log that the document has, and the log itself if none is left.
fn finish(folder: &ConversationFolder, session: &mut Session, snapshot: &WindowSnapshot) -> Result<(), StoreError> {
    let failed = |error| failed("the log of a conversation cannot be shortened", error);
    let name = layout::log(&snapshot.stem);
    if std::mem::take(&mut session.is_damaged) {
        folder.files.quarantine_copy(&name).map_err(failed)?;
    }
    let sync = folder.options.durability == Durability::Synced;
    let log = session.open_log(folder)?;
    log.keep_from(snapshot.offset, sync).map_err(failed)?;
    if log.is_empty() {
        session.log = None;
        folder.files.remove(&name).map_err(failed)?;
    }
    Ok(())
}
