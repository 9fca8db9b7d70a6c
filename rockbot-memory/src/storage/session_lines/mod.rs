//! Dated entries in a file of lines for each session: what feedback and uses of skills have in common.

mod purge;

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rockbot_core::files::{DataFolder, FileError, Found, LineFile, encode, name_of};
use rockbot_core::store::{StoreError, TimelineEntry};
use rockbot_core::{Principal, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::storage::blocking::{blocking, failed, invalid};
use crate::storage::external_edit::CLOCK_SLACK;

/// The longest line that is read or written, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// How many files are kept open.
const MAX_OPEN: usize = 64;

/// An entry of a session that is written as a line.
pub(crate) trait Line: TimelineEntry + Serialize + DeserializeOwned {
    /// Name of the entry in messages, such as `feedback`.
    const WHAT: &'static str;
}

/// `{session}.jsonl` for each session; those of other principals in `@{principal}/`.
///
/// An append resolves when the operating system has it: it survives `kill -9`.
pub(crate) struct SessionLines<T> {
    folder: DataFolder,
    /// Files that were written last, the latest at the end.
    open: Mutex<VecDeque<(String, LineFile)>>,
    damaged: AtomicU64,
    lines: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for SessionLines<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLines")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl<T: Line> SessionLines<T> {
    pub(crate) fn open(folder: PathBuf) -> Result<Self, StoreError> {
        let folder = DataFolder::open(folder);
        Ok(Self {
            folder: folder
                .map_err(|error| failed(format_args!("the folder of {} cannot be opened", T::WHAT), error))?,
            open: Mutex::default(),
            damaged: AtomicU64::new(0),
            lines: PhantomData,
        })
    }

    /// How many files were set aside, and how many lines the last query skipped, since they could not be read.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    pub(crate) fn append(&self, principal: &Principal, entry: &T) -> Result<(), StoreError> {
        let name = encode(entry.session().as_str()).and_then(|session| name_of(principal, &format!("{session}.jsonl")));
        let name = name.map_err(|error| failed(format_args!("{} has no file", T::WHAT), error))?;
        let mut line =
            serde_json::to_vec(entry).map_err(|error| invalid(format_args!("{} is no JSON", T::WHAT), error))?;
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

    fn write(&self, name: &str, line: &[u8]) -> Result<(), FileError> {
        // Nothing that can panic runs under the lock.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn open_file(&self, name: &str) -> Result<LineFile, FileError> {
        match self.folder.lines(name) {
            Err(error) if error.is_damage() => {
                self.set_aside(name, &error)?;
                self.folder.lines(name)
            }
            opened => opened,
        }
    }

    fn set_aside(&self, name: &str, error: &FileError) -> Result<(), FileError> {
        let aside = self.folder.set_aside(name)?;
        self.damaged.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().display();
        tracing::warn!(%folder, file = name, set_aside_as = aside, %error, "{} cannot be read", T::WHAT);
        Ok(())
    }

    /// The newest `limit` entries since `since`, oldest first. Holds about twice as many in memory.
    pub(crate) async fn recent(
        self: &Arc<Self>,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<T>, StoreError> {
        let (this, principal) = (self.clone(), principal.clone());
        blocking(move || this.scan(&principal, since, limit)).await
    }

    fn scan(&self, principal: &Principal, since: Timestamp, limit: usize) -> Result<Vec<T>, StoreError> {
        let failed = |error| failed(format_args!("{} cannot be read", T::WHAT), error);
        let mut found = self.folder.list_of(principal).map_err(failed)?;
        found.retain(|found| found.name.ends_with(".jsonl") && may_be_since(found, since));
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let (mut newest, mut skipped) = (Vec::new(), 0);
        for found in found {
            let read = self.folder.read_lines(&found.name, MAX_LINE, |line| {
                match serde_json::from_slice::<T>(line) {
                    Ok(entry) if entry.timestamp() >= since => newest.push(entry),
                    Ok(_) => {}
                    Err(_) => skipped += 1,
                }
                if newest.len() > limit.saturating_mul(2).saturating_add(1024) {
                    keep_newest(&mut newest, limit);
                }
            });
            match read {
                Ok(overlong) => skipped += overlong.unwrap_or(0),
                Err(error) if error.is_damage() => self.set_aside(&found.name, &error).map_err(failed)?,
                Err(error) => return Err(failed(error)),
            }
        }
        if skipped > 0 {
            self.damaged.fetch_add(skipped, Ordering::Relaxed);
            tracing::warn!(lines = skipped, "{} has lines that cannot be read", T::WHAT);
        }
        keep_newest(&mut newest, limit);
        Ok(newest)
    }
}

/// Whether a file may have an entry that is not older than `since`.
fn may_be_since(found: &Found, since: Timestamp) -> bool {
    let since = UNIX_EPOCH.checked_add(Duration::from_millis(since.as_millis()));
    let changed = found
        .modified
        .and_then(|modified: SystemTime| modified.checked_add(CLOCK_SLACK));
    since.zip(changed).is_none_or(|(since, changed)| changed >= since)
}

/// Of entries with the same time, those that were written first come first.
fn keep_newest<T: Line>(entries: &mut Vec<T>, limit: usize) {
    entries.sort_by_key(TimelineEntry::timestamp);
    entries.drain(..entries.len().saturating_sub(limit));
}
