//! Advisory file locks: one process at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::error::FileError;
use super::no_follow::open_plain;
use super::system;

/// An exclusive advisory lock on a file, held until it is dropped. The system releases it when
/// the process dies, so a crash leaves no stale lock.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks the file at `path`. Creates it, with its folders, if it is missing.
    ///
    /// # Errors
    ///
    /// Returns [`FileError::Locked`] if the file is locked already, here or in another process, and
    /// an error if it is not a plain file or cannot be created.
    pub fn take(path: &Path) -> Result<Self, FileError> {
        let file = plain_file(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(FileError::Locked(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(FileError::io("locked", path)(error)),
        }
    }

    /// Locks `folder` by the file `lock` in it. That file stays: removing it would let two processes
    /// lock two different files of the same name.
    pub(super) fn take_folder(folder: &Path) -> Result<Self, FileError> {
        Self::take(&folder.join("lock")).map_err(|error| match error {
            FileError::Locked(_) => FileError::Locked(folder.to_owned()),
            error => error,
        })
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that has just been forked holds a copy of the handle, and
        // with it the lock.
        let _ = self.0.unlock();
    }
}

/// Opens the plain file at `path` for reading and writing. Creates it, with its folders, if it is
/// missing, readable by its owner only. Follows no link.
///
/// # Errors
///
/// Returns an error if `path` is no plain file, or it cannot be opened or created.
pub fn plain_file(path: &Path) -> Result<File, FileError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        system::make_folder(folder, true).map_err(FileError::io("made", folder))?;
    }
    let opened = open_plain(path, system::open_options().read(true).write(true), true)?;
    let (file, _) = opened.ok_or_else(|| FileError::NotPlain(path.to_owned()))?;
    Ok(file)
}
