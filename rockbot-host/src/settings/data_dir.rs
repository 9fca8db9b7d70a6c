//! A check whether a folder can be the data folder of a host. It leaves no trace.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The state of a usable data folder.
///
/// # Examples
///
/// ```
/// use rockbot_host::settings::DataDir;
///
/// let folder = tempfile::tempdir()?;
/// assert_eq!(DataDir::check(folder.path())?, DataDir::Ready);
/// assert_eq!(DataDir::check(&folder.path().join("agent"))?, DataDir::ToBeMade);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataDir {
    /// The folder exists and is writable.
    Ready,
    /// The folder does not exist and can be created; the host creates it.
    ToBeMade,
}

/// The error of [`DataDir::check`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataDirError {
    /// The path, or one above it, is not a folder.
    #[error("`{0}` is not a folder: remove it, or choose another folder")]
    NotAFolder(PathBuf),
    /// The folder is not writable.
    #[error("`{folder}` is not writable: {cause}; change its permissions, or choose another folder")]
    NotWritable {
        /// The folder, or the nearest existing one above it.
        folder: PathBuf,
        /// The error of the attempt to write.
        cause: io::Error,
    },
    /// Another process has its data in the folder.
    #[error("another process uses `{0}`: stop that process, or choose another folder")]
    InUse(PathBuf),
}

impl DataDir {
    /// Checks whether a host could keep its data in `folder`.
    ///
    /// A file is created there, or in the nearest existing folder above it, and removed again.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be created or written, or another process uses it.
    pub fn check(folder: &Path) -> Result<Self, DataDirError> {
        let existing = nearest(folder);
        if !existing.is_dir() {
            return Err(DataDirError::NotAFolder(existing.to_owned()));
        }
        try_to_write(existing).map_err(|cause| DataDirError::NotWritable {
            folder: existing.to_owned(),
            cause,
        })?;
        if existing != folder {
            return Ok(Self::ToBeMade);
        }
        match is_in_use(&folder.join("turns").join("lock")) {
            Ok(false) => Ok(Self::Ready),
            Ok(true) => Err(DataDirError::InUse(folder.to_owned())),
            Err(cause) => Err(DataDirError::NotWritable {
                folder: folder.join("turns"),
                cause,
            }),
        }
    }
}

/// Returns the nearest existing path: the folder itself, or one above it.
fn nearest(folder: &Path) -> &Path {
    let mut above = folder.ancestors().take_while(|path| !path.as_os_str().is_empty());
    above
        .find(|path| path.symlink_metadata().is_ok())
        .unwrap_or(Path::new("."))
}

/// Creates a file and removes it. Permission bits are not enough: quotas and read-only mounts
/// refuse as well.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".rockbot-check-{}", std::process::id()));
    File::create_new(&path)?;
    std::fs::remove_file(&path)
}

/// Reports whether another process holds the lock of the turn journal.
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
