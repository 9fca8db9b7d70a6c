//! Folding: the window becomes the document, and the log begins again.
//!
//! Nobody who appends waits for the disk meanwhile: the session is locked only to take its picture, to put the
//! document in place, and to shorten the log.

use std::sync::PoisonError;

use rockbot_core::Digest;
use rockbot_core::files::{Draft, LineFile};
use rockbot_core::store::{StoreError, StoreErrorKind};

use super::folder::{Shelf, failed};
use super::layout;
use super::resident::Slot;
use super::session::{FOLD_BYTES, Folded, Session};
use crate::journal::Durability;

/// A fold that has begun.
struct Picture {
    stem: String,
    epoch: u64,
    document: Vec<u8>,
    /// Where the log goes on.
    offset: u64,
}

/// Folds a session that is in memory, unless there is nothing to fold.
pub(super) fn fold(shelf: &Shelf, slot: &Slot) -> Result<(), StoreError> {
    let folded = fold_steps(shelf, slot);
    let mut session = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(session) = session.as_mut() {
        session.is_folding = false;
        session.is_ahead |= folded.is_err();
        // Also after a failure, not before it has grown as much again.
        let without_log = if folded.is_err() { session.fold_at } else { 0 };
        session.fold_at = session.log.as_ref().map_or(without_log, LineFile::len) + FOLD_BYTES;
        // Whoever appends opens it again, and is counted.
        session.log = None;
    }
    folded
}

fn fold_steps(shelf: &Shelf, slot: &Slot) -> Result<(), StoreError> {
    let Some(picture) = locked(slot, None, |session| begin(shelf, session))?.flatten() else {
        return Ok(());
    };
    let name = layout::document(&picture.stem);
    let failed = |error| failed("a conversation cannot be folded", error);
    let draft = shelf.folder.draft(&name, &picture.document).map_err(failed)?;
    let published = locked(slot, Some(picture.epoch), |_| Draft::publish(draft).map_err(failed))?;
    if published.is_some() {
        shelf.folder.sync(&name).map_err(failed)?;
        locked(slot, Some(picture.epoch), |session| finish(shelf, session, &picture))?;
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

/// Takes the picture, and notes in the log what it will be.
fn begin(shelf: &Shelf, session: &mut Session) -> Result<Option<Picture>, StoreError> {
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
    let log = session.open_log(shelf)?;
    log.append(&line)
        .map_err(|error| failed("a conversation cannot be written", error))?;
    let offset = log.len();
    session.is_ahead = false;
    Ok(Some(Picture {
        stem: session.stem.clone(),
        epoch: session.epoch,
        document,
        offset,
    }))
}

/// Shortens the log by what the document has.
fn finish(shelf: &Shelf, session: &mut Session, picture: &Picture) -> Result<(), StoreError> {
    let failed = |error| failed("the log of a conversation cannot be shortened", error);
    let name = layout::log(&picture.stem);
    if std::mem::take(&mut session.is_damaged) {
        shelf.folder.copy_aside(&name).map_err(failed)?;
    }
    let sync = shelf.options.durability == Durability::Synced;
    let log = session.open_log(shelf)?;
    log.keep_from(picture.offset, sync).map_err(failed)?;
    if log.is_empty() {
        session.log = None;
        shelf.folder.remove(&name).map_err(failed)?;
    }
    Ok(())
}
