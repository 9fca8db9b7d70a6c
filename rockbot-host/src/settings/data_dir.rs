//! Whether a folder can hold what an agent keeps, found out without leaving anything behind.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// What can be said about a folder that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataDir {
    /// It is there, and files can be written into it.
    Ready,
    /// It is not there, and can be made.
    ToBeMade,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// Something else has this name.
    #[error("`{0}` is not a folder: remove it, or choose another folder")]
    NotAFolder(PathBuf),
    /// Nothing can be written here.
    #[error("nothing can be written in `{folder}`: {source}; change its permissions, or choose another folder")]
    NotWritable {
        /// The folder, or the nearest one above that is there.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another host works here.
    #[error("another process works in `{0}`: stop that one, or choose another folder")]
    InUse(PathBuf),
}

impl DataDir {
    /// Looks whether a host could keep its data in `folder`. A file is written there and removed.
    ///
    /// # Errors
    ///
    /// Fails when the folder is not there and cannot be made, cannot be written, or another process works in it.
    pub fn check(folder: &Path) -> Result<Self, DataDirError> {
        let existing = nearest(folder);
        if !existing.is_dir() {
            return Err(DataDirError::NotAFolder(existing.to_owned()));
        }
        try_to_write(existing).map_err(|source| DataDirError::NotWritable {
            folder: existing.to_owned(),
            source,
        })?;
        if existing != folder {
            return Ok(Self::ToBeMade);
        }
        match is_in_use(&folder.join("turns").join("lock")) {
            Ok(false) => Ok(Self::Ready),
            Ok(true) => Err(DataDirError::InUse(folder.to_owned())),
            Err(source) => Err(DataDirError::NotWritable {
                folder: folder.join("turns"),
                source,
            }),
        }
    }
}

/// The folder itself, or the nearest one above it that is there.
fn nearest(folder: &Path) -> &Path {
    let mut above = folder.ancestors().take_while(|path| !path.as_os_str().is_empty());
    above
        .find(|path| path.symlink_metadata().is_ok())
        .unwrap_or(Path::new("."))
}

/// Permissions do not tell everything: only writing does.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".rockbot-check-{}", std::process::id()));
    File::create_new(&path)?;
    std::fs::remove_file(&path)
}

/// Whether somebody holds the lock of the turn journal.
fn is_in_use(lock: &Path) -> io::Result<bool> {
    let file = match OpenOptions::new().read(true).write(true).open(lock) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
