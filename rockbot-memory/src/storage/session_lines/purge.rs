//! Removing lines that are too old.
//!
//! A file is replaced in one step, and only while nobody has appended to it: a crash leaves all of its lines or those that
//! stay, and no append waits for the disk.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use rockbot_core::files::{FileError, Found, owner_of};
use rockbot_core::store::StoreError;
use rockbot_core::{Principal, Timestamp};

use super::{Line, MAX_LINE, SessionLines};
use crate::storage::blocking::{blocking, failed};
use crate::storage::external_edit::is_changed_since;

impl<T: Line> SessionLines<T> {
    /// Removes, for all principals, what is older than `before` or than the newest `most` lines of its principal. Lines
    /// that cannot be read stay, and so do files that somebody changed after their newest line.
    pub(crate) async fn purge(self: &Arc<Self>, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        let this = self.clone();
        blocking(move || this.purge_all(before, most)).await
    }

    fn purge_all(&self, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        let failed = |error| failed(format_args!("{} cannot be purged", T::WHAT), error);
        let mut files: BTreeMap<Principal, Vec<Found>> = BTreeMap::new();
        for found in self.folder.list("").map_err(failed)? {
            let owner = owner_of(&found.name).map(|(owner, _)| owner);
            match owner.filter(|_| found.name.ends_with(".jsonl")) {
                Some(owner) => files.entry(owner).or_default().push(found),
                // What a crash left of an earlier purge.
                None if found.name.ends_with(".jsonl.tmp") => drop(self.folder.remove(&found.name).map_err(failed)?),
                None => {}
            }
        }
        let mut gone = 0;
        for files in files.values() {
            let since = self.kept_since(files, before, most);
            for file in files {
                gone += self.purge_file(file, since).unwrap_or_else(|error| {
                    tracing::warn!(file = file.name, %error, "{} that is too old stays for now", T::WHAT);
                    0
                });
            }
        }
        Ok(gone)
    }

    /// When the oldest line that stays was written, of the lines of one principal.
    fn kept_since(&self, files: &[Found], before: Timestamp, most: usize) -> Timestamp {
        if most == 0 {
            return Timestamp::from_millis(u64::MAX);
        }
        let mut times = Vec::new();
        for file in files {
            // What cannot be read has no time.
            let _ = self.folder.read_lines(&file.name, MAX_LINE, |line| {
                times.extend(serde_json::from_slice(line).ok().map(|line: T| line.timestamp()));
            });
        }
        times.sort_unstable();
        let oldest = times.get(times.len().saturating_sub(most));
        oldest.map_or(before, |oldest| before.max(*oldest))
    }

    fn purge_file(&self, file: &Found, since: Timestamp) -> Result<u64, FileError> {
        let (mut kept, mut gone, mut newest) = (Vec::new(), 0, Timestamp::default());
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
        // Of lines that are too long we do not have the text.
        let is_whole = read? == Some(0);
        if gone == 0 || !is_whole || is_changed_since(file, newest) {
            return Ok(0);
        }
        Ok(if self.exchange(file, &kept)? { gone } else { 0 })
    }

    /// Leaves `kept` of a file, unless it has changed since it was found. Returns whether it did.
    fn exchange(&self, file: &Found, kept: &[u8]) -> Result<bool, FileError> {
        let draft = match kept.is_empty() {
            true => None,
            // It is as old as it was, or it would look as if somebody had changed it.
            false => Some(self.folder.draft(&file.name, kept)?.dated(file.modified)?),
        };
        {
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
