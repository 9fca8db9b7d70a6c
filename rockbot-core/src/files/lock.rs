//! One process at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::error::FileError;
use super::plain::open_plain;
use super::system;

/// Holds a folder until it is dropped.
#[derive(Debug)]
pub(super) struct FolderLock(File);

impl FolderLock {
    pub(super) fn take(folder: &Path) -> Result<Self, FileError> {
        let path = folder.join("lock");
        let mut options = system::open_options();
        let file = open_plain(&path, options.read(true).write(true), true)?;
        let (file, _) = file.ok_or_else(|| FileError::NotPlain(path.clone()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(FileError::Locked(folder.to_owned())),
            Err(TryLockError::Error(error)) => Err(FileError::io("locked", &path)(error)),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing alone would not do: a child process that has just been forked holds a copy of the handle.
        let _ = self.0.unlock();
    }
}
