//! Purge of lines that are too old.
//!
//! A file is replaced atomically, and only if no line was appended since it was read. So a crash
//! leaves either all lines or the lines that stay, and no append waits for the disk.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use rockbot_core::files::{FileEntry, FileError, owner_of};
use rockbot_core::store::StoreError;
use rockbot_core::{Principal, Timestamp};

use super::{MAX_LINE, StoredEntry, Timeline};
use crate::storage::blocking::{blocking, failed};
use crate::storage::external_edit::is_changed_since;

impl<T: StoredEntry> Timeline<T> {
    /// Removes the entries of all principals that are older than `before` or exceed the newest
    /// `max_entries` of their principal, and returns their number. Unreadable lines stay, and so do
    /// files that were edited after their newest line.
    pub(crate) async fn purge(self: &Arc<Self>, before: Timestamp, max_entries: usize) -> Result<u64, StoreError> {
        let this = self.clone();
        blocking(move || this.purge_all(before, max_entries)).await
    }

    fn purge_all(&self, before: Timestamp, max_entries: usize) -> Result<u64, StoreError> {
        let failed = |error| failed(format_args!("{} cannot be purged", T::WHAT), error);
        let mut files: BTreeMap<Principal, Vec<FileEntry>> = BTreeMap::new();
        for found in self.folder.list("").map_err(failed)? {
            let owner = owner_of(&found.name).map(|(owner, _)| owner);
            if let Some(owner) = owner.filter(|_| found.name.ends_with(".jsonl")) {
                files.entry(owner).or_default().push(found);
            }
        }
        let mut gone = 0;
        for files in files.values() {
            let since = self.kept_since(files, before, max_entries);
            for file in files {
                gone += self.purge_file(file, since).unwrap_or_else(|error| {
                    tracing::warn!(file = file.name, %error, "expired {} could not be purged and stays until the next purge", T::WHAT);
                    0
                });
            }
        }
        Ok(gone)
    }

    /// Returns the time of the oldest entry of a principal that stays.
    fn kept_since(&self, files: &[FileEntry], before: Timestamp, max_entries: usize) -> Timestamp {
        if max_entries == 0 {
            return Timestamp::from_millis(u64::MAX);
        }
        let mut times = Vec::new();
        for file in files {
            // A file that cannot be read contributes no times; it is not purged either.
            let _ = self.folder.read_lines(&file.name, MAX_LINE, |line| {
                times.extend(serde_json::from_slice(line).ok().map(|line: T| line.timestamp()));
            });
        }
        times.sort_unstable();
        let oldest = times.get(times.len().saturating_sub(max_entries));
        oldest.map_or(before, |oldest| before.max(*oldest))
    }

    /// Removes the entries of one file that are older than `since`, and returns their number.
    fn purge_file(&self, file: &FileEntry, since: Timestamp) -> Result<u64, FileError> {
        let mut kept = Vec::new();
        let mut gone = 0;
        let mut newest = Timestamp::default();
        let read = self.folder.read_lines(&file.name, MAX_LINE, |line| {
            if let Ok(entry) = serde_json::from_slice::<T>(line) {
                newest = newest.max(entry.timestamp());
                if entry.timestamp() < since {
                    gone += 1;
                    return;
                }
            }
            kept.extend_from_slice(line);
            kept.push(b'\n');
        });
        // The text of overlong lines was not read, so a file with such lines cannot be rewritten without
        // losing them.
        let is_whole = read? == Some(0);
        if gone == 0 || !is_whole || is_changed_since(file, newest) {
            return Ok(0);
        }
        Ok(if self.exchange(file, &kept)? { gone } else { 0 })
    }

    /// Replaces the content of `file` by `kept`, unless the file changed since it was listed. Returns
    /// `true` if it did so.
    fn exchange(&self, file: &FileEntry, kept: &[u8]) -> Result<bool, FileError> {
        let draft = match kept.is_empty() {
            true => None,
            // Keeps the modification time: otherwise the next purge would take the file for a file that a
            // person edited.
            false => Some(self.folder.draft(&file.name, kept)?.dated(file.modified)?),
        };
        {
            // Appends take the same lock, so none can fall between the check and the rename. The new content
            // was synced before; only the rename happens under the lock.
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            if self.folder.find(&file.name)?.as_ref() != Some(file) {
                return Ok(false);
            }
            open.retain(|(name, _)| *name != file.name);
            match draft {
                Some(draft) => draft.publish()?,
                None => drop(self.folder.remove(&file.name)?),
            }
        }
        self.folder.sync(&file.name)?;
        Ok(true)
    }
}
