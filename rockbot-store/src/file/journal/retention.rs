//! Rotation and retention of segments.

use std::io;
use std::sync::Arc;

use rockbot_core::files::DataFolder;
use tokio::runtime::Handle;

use super::Durability;
use super::file::{FileTurnJournal, JournalState};
use super::segment::{self, SegmentWriter};
use super::segment_index;

impl FileTurnJournal {
    /// Begins the next segment if the current one is full, and compacts the old segments.
    ///
    /// A failure is logged and the current segment grows on: a journal that is too long is better
    /// than a lost record.
    pub(super) fn rotate(&self, state: &mut JournalState) {
        if state.writer.len() < self.options.segment_bytes {
            return;
        }
        match SegmentWriter::open(&self.folder, state.writer.number() + 1) {
            Ok(writer) => {
                // From now on a group commit syncs the new file only. Its waiters rely on all
                // earlier writes being on the disk, so the full segment is synced here, under the
                // lock. A segment that could not be synced stays the current segment: a later sync
                // of it fails again, or writes it.
                let synced = state.writer.handle().map_err(io::Error::from);
                let synced = synced.and_then(|full| full.sync());
                if let (Err(error), Durability::Synced) = (synced, self.options.durability) {
                    tracing::warn!(%error, "a full segment of the turn journal cannot be synced; it keeps growing");
                    state.writer.distrust();
                    self.commit.fail_waiting(&Arc::new(error));
                    return;
                }
                let full = std::mem::replace(&mut state.writer, writer);
                self.compact(state);
                self.index(&full);
            }
            Err(error) => {
                tracing::warn!(%error, "the turn journal cannot begin a new segment; the current one keeps growing");
            }
        }
    }

    /// Writes the index of a full segment, away from the turn that filled it. Where that fails, or is
    /// not possible without a runtime, the next start reads the segment's lines.
    fn index(&self, full: &SegmentWriter) {
        let Ok(runtime) = Handle::try_current() else { return };
        if full.len() < segment_index::MIN_INDEXED {
            return;
        }
        // Without the lock of the folder, which must not outlast the journal.
        let folder = DataFolder::unheld(self.folder.path());
        let number = full.number();
        runtime.spawn_blocking(move || {
            if let Err(error) = segment_index::write(&folder, number) {
                tracing::warn!(%error, segment = number, "the index of a segment of the turn journal cannot be written");
            }
        });
    }

    /// Removes lines of expired runs, up to the first segment with a line of a run that ended within
    /// the retention period.
    ///
    /// Later segments stay untouched until their turn comes; the lines of unfinished runs are kept at
    /// any age.
    pub(super) fn compact(&self, state: &mut JournalState) {
        let needed = state.index.expire(self.options.clock.now());
        let numbers = segment::numbers(&self.folder).unwrap_or_default();
        let end = needed.map_or(state.writer.number(), |needed| needed.min(state.writer.number()));
        for number in numbers.into_iter().take_while(|number| *number < end) {
            if let Err(error) = self.shrink(state, number) {
                tracing::warn!(%error, segment = number, "an old segment of the turn journal cannot be removed");
            }
        }
    }

    /// Rewrites a segment with only the lines of unfinished runs, or removes it if there are no
    /// such lines.
    fn shrink(&self, state: &mut JournalState, number: u32) -> io::Result<()> {
        let locations = state.index.open_in(number);
        // Counted before the files change: an attempt that fails halfway may have moved lines, too.
        state.compactions += 1;
        if locations.is_empty() {
            return Ok(segment::remove(&self.folder, number)?);
        }
        if segment::count(&self.folder, number)? > locations.len() {
            // It would not fit any more.
            self.folder.remove(&segment::index_name(number))?;
            let moved = segment::rewrite(&self.folder, number, &locations)?;
            state.index.relocate(&locations, &moved);
        }
        Ok(())
    }
}
