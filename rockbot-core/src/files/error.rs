//! The error of operations on files.

use std::io;
use std::path::{Path, PathBuf};

/// The error of a file or folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Another process, or another value in this process, holds the folder.
    #[error("the folder `{}` is in use: end the process that has it open, or close what has it open in this one, or use another folder", .0.display())]
    Locked(PathBuf),
    /// A link, a device or a folder is in the place of a plain file or folder.
    #[error("`{}` is no plain file or folder, and links are not followed: move it away", .0.display())]
    NotPlain(PathBuf),
    /// A file is larger than its reader accepts.
    #[error("`{}` is larger than {limit} bytes: move it away, or shorten it", .path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Maximum size, in bytes.
        limit: u64,
    },
    /// Names in a folder have changed, and the disk could not confirm it: the change is visible,
    /// and a power failure may undo it.
    #[error("the folder `{}` cannot be synced: the change is visible, and a power failure may undo it; check the disk and write it again: {cause}", .path.display())]
    NotDurable {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The operating system refused an operation.
    #[error("`{}` cannot be {tried}; check the folder, its permissions and the free space: {cause}", .path.display())]
    Io {
        /// Operation that failed: `read`, `written`, …
        tried: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
}

impl FileError {
    /// Returns `true` if a retry cannot help: the file can never be read as it is, so it should be
    /// [quarantined](super::DataFolder::quarantine).
    pub fn is_damage(&self) -> bool {
        match self {
            Self::NotPlain(_) | Self::TooLarge { .. } => true,
            Self::Io { cause, .. } => cause.kind() == io::ErrorKind::PermissionDenied,
            Self::Locked(_) | Self::NotDurable { .. } => false,
        }
    }

    /// Returns `true` if the same operation may succeed a little later, with nothing else done.
    pub fn retry_helps(&self) -> bool {
        use io::ErrorKind::{Interrupted, ResourceBusy, TimedOut, WouldBlock};
        match self {
            Self::Locked(_) => true,
            Self::Io { cause, .. } => matches!(cause.kind(), Interrupted | ResourceBusy | TimedOut | WouldBlock),
            Self::NotPlain(_) | Self::TooLarge { .. } | Self::NotDurable { .. } => false,
        }
    }

    pub(super) fn io(tried: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Io {
            tried,
            path: path.to_owned(),
            cause,
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Io { cause, .. } | FileError::NotDurable { cause, .. } => cause.kind(),
            FileError::Locked(_) => io::ErrorKind::ResourceBusy,
            FileError::NotPlain(_) | FileError::TooLarge { .. } => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
