//! Folding: the window becomes the document, and the log begins again.
//!
//! Nobody who appends waits for the disk meanwhile: the session is locked only to take its snapshot, to put the
//! document in place, and to shorten the log.

use std::sync::PoisonError;

use rockbot_core::Digest;
use rockbot_core::files::{Draft, LineFile};
use rockbot_core::store::{StoreError, StoreErrorKind};

use super::folder::{ConversationFolder, failed};
use super::layout;
use super::session::{COMPACT_AFTER_BYTES, Folded, Session};
use super::session_cache::Slot;
use crate::journal::Durability;

/// A fold that has begun.
struct WindowSnapshot {
    stem: String,
    epoch: u64,
    document: Vec<u8>,
    /// Where the log goes on.
    offset: u64,
}

/// Folds a session that is in memory, unless there is nothing to fold.
pub(super) fn compact(folder: &ConversationFolder, slot: &Slot) -> Result<(), StoreError> {
    let folded = compact_steps(folder, slot);
    let mut session = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(session) = session.as_mut() {
        session.is_compacting = false;
        session.is_ahead |= folded.is_err();
        // Also after a failure, not before it has grown as much again.
        let without_log = if folded.is_err() { session.compact_at } else { 0 };
        session.compact_at = session.log.as_ref().map_or(without_log, LineFile::len) + COMPACT_AFTER_BYTES;
        // Whoever appends opens it again, and is counted.
        session.log = None;
    }
    folded
}

fn compact_steps(folder: &ConversationFolder, slot: &Slot) -> Result<(), StoreError> {
    let Some(snapshot) = locked(slot, None, |session| begin(folder, session))?.flatten() else {
        return Ok(());
    };
    let name = layout::document(&snapshot.stem);
    let failed = |error| failed("a conversation cannot be folded", error);
    let draft = folder.files.draft(&name, &snapshot.document).map_err(failed)?;
    let published = locked(slot, Some(snapshot.epoch), |_| Draft::publish(draft).map_err(failed))?;
    if published.is_some() {
        folder.files.sync(&name).map_err(failed)?;
        locked(slot, Some(snapshot.epoch), |session| finish(folder, session, &snapshot))?;
    }
    Ok(())
}

/// Works on the session, unless it is gone or another one since `epoch`.
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

/// Takes the snapshot, and notes in the log what it will be.
fn begin(folder: &ConversationFolder, session: &mut Session) -> Result<Option<WindowSnapshot>, StoreError> {
    if !session.is_ahead {
        return Ok(None);
    }
    let json = |error: serde_json::Error| {
        StoreError::new(StoreErrorKind::Invalid, "a conversation cannot be written as JSON").with_source(error)
    };
    let document = session.to_document().map_err(json)?;
    let folded = Digest::of([&document]);
    let mut line = serde_json::to_vec(&Folded { folded }).map_err(json)?;
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

/// Shortens the log by what the document has.
fn finish(folder: &ConversationFolder, session: &mut Session, snapshot: &WindowSnapshot) -> Result<(), StoreError> {
    let failed = |error| failed("the log of a conversation cannot be shortened", error);
    let name = layout::log(&snapshot.stem);
    if std::mem::take(&mut session.is_damaged) {
        folder.files.copy_aside(&name).map_err(failed)?;
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
