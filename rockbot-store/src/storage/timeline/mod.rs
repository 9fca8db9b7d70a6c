//! Dated entries in one JSON Lines file for each session: the common part of feedback and uses of
//! skills.
//!
//! Entries are only appended, queried by time and purged by age. A session has a file of its own,
//! so that an append is one write to an open file and a query skips files that were last modified
//! before its time range.

mod purge;

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rockbot_core::files::{DataFolder, FileEntry, FileError, LineFile, encode, name_of};
use rockbot_core::store::{StoreError, TimelineEntry};
use rockbot_core::{Principal, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::storage::blocking::{blocking, failed, invalid};
use crate::storage::external_edit::CLOCK_SLACK;
use crate::storage::folder::open_folder;

/// Maximum length of a line in bytes, read or written.
const MAX_LINE: u64 = 1 << 20;

/// Maximum number of open files; the file that was written least recently is closed.
const MAX_OPEN: usize = 64;

/// A [`TimelineEntry`] that can be written as a line of JSON or as a row of a table.
pub trait StoredEntry: TimelineEntry + Serialize + DeserializeOwned {
    /// The noun for it in errors and logs, such as `feedback`.
    const WHAT: &'static str;

    /// The name of its table in a database.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    const TABLE: &'static str;
}

/// A folder with `{session}.jsonl` for each session; the sessions of other principals are in
/// `@{principal}/`.
///
/// An append returns once the operating system has the line, without a sync: it survives `kill
/// -9`, not power loss.
pub(crate) struct Timeline<T> {
    folder: DataFolder,
    /// Open files, the most recently written one last.
    open: Mutex<VecDeque<(String, LineFile)>>,
    damaged: AtomicU64,
    lines: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Timeline<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl<T: StoredEntry> Timeline<T> {
    /// Opens `folder`, creating it if it is missing, and locks it against other processes.
    pub(crate) fn open(folder: PathBuf) -> Result<Self, StoreError> {
        let what = format_args!("the folder of {}", T::WHAT);
        Ok(Self {
            folder: open_folder(folder, what, |name| name.ends_with(".jsonl"))?,
            open: Mutex::default(),
            damaged: AtomicU64::new(0),
            lines: PhantomData,
        })
    }

    /// Returns the number of quarantined files and skipped lines since the timeline was opened.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Appends an entry to the file of its session.
    pub(crate) fn append(&self, principal: &Principal, entry: &T) -> Result<(), StoreError> {
        let name = encode(entry.session().as_str()).and_then(|session| name_of(principal, &format!("{session}.jsonl")));
        let name = name.map_err(|error| failed(format_args!("{} has no file", T::WHAT), error))?;
        let mut line = serde_json::to_vec(entry)
            .map_err(|error| invalid(format_args!("{} cannot be serialized as JSON", T::WHAT), error))?;
        if line.len() as u64 >= MAX_LINE {
            let len = format!("{} bytes", line.len());
            return Err(invalid(
                format_args!("{} has fewer than {MAX_LINE} bytes; shorten it", T::WHAT),
                len,
            ));
        }
        line.push(b'\n');
        let written = self.write(&name, &line);
        written.map_err(|error| failed(format_args!("{} cannot be written", T::WHAT), error))
    }

    /// Appends `line` to the file `name`, opening it if needed.
    fn write(&self, name: &str, line: &[u8]) -> Result<(), FileError> {
        // Held during the write, which is a copy into the page cache: lines of one file must not
        // interleave. A purge exchanges files under the same lock. No code that can panic runs under it.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // A person or a purge may have replaced the file: then the open handle writes to a deleted one.
        let known = open.iter().position(|(known, _)| known == name);
        let known = known.and_then(|at| open.remove(at)).map(|(_, file)| file);
        let mut file = match known.filter(LineFile::is_current) {
            Some(file) => file,
            None => self.open_file(name)?,
        };
        file.append(line)?;
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back((name.to_owned(), file));
        Ok(())
    }

    /// Opens the file `name` to append, after quarantining whatever cannot be a file of lines.
    fn open_file(&self, name: &str) -> Result<LineFile, FileError> {
        match self.folder.lines(name) {
            Err(error) if error.is_damage() => {
                self.quarantine(name, &error)?;
                self.folder.lines(name)
            }
            opened => opened,
        }
    }

    /// Renames a damaged file to `….damaged`.
    fn quarantine(&self, name: &str, error: &FileError) -> Result<(), FileError> {
        let moved = self.folder.quarantine(name)?;
        self.damaged.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().display();
        tracing::warn!(%folder, file = name, quarantined_as = moved, %error, "{} cannot be read; the file was quarantined", T::WHAT);
        Ok(())
    }

    /// Returns the newest `limit` entries since `since`, oldest first. Holds about twice as many in
    /// memory.
    pub(crate) async fn recent(
        self: &Arc<Self>,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        let this = self.clone();
        let principal = principal.clone();
        blocking(move || this.scan(&principal, since, limit)).await
    }

    /// Reads the files that may have entries since `since`.
    fn scan(&self, principal: &Principal, since: Timestamp, limit: usize) -> Result<Vec<T>, StoreError> {
        let failed = |error| failed(format_args!("{} cannot be read", T::WHAT), error);
        let mut found = self.folder.list_of(principal).map_err(failed)?;
        found.retain(|found| found.name.ends_with(".jsonl") && may_be_since(found, since));
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let mut newest = Vec::new();
        let mut skipped = 0;
        for found in found {
            let read = self.folder.read_lines(&found.name, MAX_LINE, |line| {
                match serde_json::from_slice::<T>(line) {
                    Ok(entry) if entry.timestamp() >= since => newest.push(entry),
                    Ok(_) => {}
                    Err(_) => skipped += 1,
                }
                // Dropping the oldest at twice the limit keeps memory bounded and the sorting amortized.
                if newest.len() > limit.saturating_mul(2).saturating_add(1024) {
                    keep_newest(&mut newest, limit);
                }
            });
            match read {
                Ok(overlong) => skipped += overlong.unwrap_or(0),
                Err(error) if error.is_damage() => self.quarantine(&found.name, &error).map_err(failed)?,
                Err(error) => return Err(failed(error)),
            }
        }
        if skipped > 0 {
            self.damaged.fetch_add(skipped, Ordering::Relaxed);
            tracing::warn!(
                lines = skipped,
                "{} has lines that cannot be read; they are skipped and stay in the file",
                T::WHAT
            );
        }
        keep_newest(&mut newest, limit);
        Ok(newest)
    }
}

/// Returns `true` if `found` may have an entry at or after `since`, judged by its modification
/// time and a tolerated skew.
fn may_be_since(found: &FileEntry, since: Timestamp) -> bool {
    let since = UNIX_EPOCH.checked_add(Duration::from_millis(since.as_millis()));
    let changed = found
        .modified
        .and_then(|modified: SystemTime| modified.checked_add(CLOCK_SLACK));
    since.zip(changed).is_none_or(|(since, changed)| changed >= since)
}

/// Keeps the newest `limit` entries, oldest first. The sort is stable: entries of the same time
/// stay in append order.
fn keep_newest<T: StoredEntry>(entries: &mut Vec<T>, limit: usize) {
    entries.sort_by_key(TimelineEntry::timestamp);
    entries.drain(..entries.len().saturating_sub(limit));
}
