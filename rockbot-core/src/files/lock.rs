//! One process at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::error::FileError;
use super::no_follow::open_plain;
use super::system;

/// Holds a file until it is dropped, so that one process at a time works on what the file stands for.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Takes the file at `path`, which is made, with its folders, if it is missing.
    ///
    /// # Errors
    ///
    /// Fails with [`FileError::Locked`] when somebody holds it, here or in another process, when it is no plain file,
    /// and when it cannot be made.
    pub fn take(path: &Path) -> Result<Self, FileError> {
        let file = plain_file(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(FileError::Locked(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(FileError::io("locked", path)(error)),
        }
    }

    /// Takes `folder` by the file `lock` in it.
    pub(super) fn take_folder(folder: &Path) -> Result<Self, FileError> {
        Self::take(&folder.join("lock")).map_err(|error| match error {
            FileError::Locked(_) => FileError::Locked(folder.to_owned()),
            error => error,
        })
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing alone would not do: a child process that has just been forked holds a copy of the handle.
        let _ = self.0.unlock();
    }
}

/// Opens the plain file at `path` to be read and written. When it is missing, it is made, with its folders, and only
/// its owner can read it. No link is followed.
///
/// # Errors
///
/// Fails when something else stands there, and when it cannot be opened or made.
pub fn plain_file(path: &Path) -> Result<File, FileError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        system::make_folder(folder, true).map_err(FileError::io("made", folder))?;
    }
    let opened = open_plain(path, system::open_options().read(true).write(true), true)?;
    let (file, _) = opened.ok_or_else(|| FileError::NotPlain(path.to_owned()))?;
    Ok(file)
}
