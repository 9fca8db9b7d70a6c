//! What can go wrong with a file.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::StoreErrorKind;

/// A file or folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Somebody else has the folder open.
    #[error("the folder `{}` is in use: end the process that has it open, or close what has it open in this one, or use another folder", .0.display())]
    Locked(PathBuf),
    /// Something else stands where a plain file or folder should be: a link, a device, a folder in place of a file.
    #[error("`{}` is no plain file or folder, and links are not followed: move it away", .0.display())]
    NotPlain(PathBuf),
    /// A file is larger than anything that belongs there.
    #[error("`{}` is larger than {limit} bytes: move it away, or shorten it", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How large it may be, in bytes.
        limit: u64,
    },
    /// The operating system refused.
    #[error("`{}` cannot be {tried}; check the folder, its permissions and the free space: {source}", .path.display())]
    Io {
        /// What was tried: `read`, `written`, …
        tried: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FileError {
    /// Whether this will not pass by itself: what stands there can never be read, so it should be
    /// [set aside](super::DataFolder::set_aside).
    pub fn is_damage(&self) -> bool {
        match self {
            Self::NotPlain(_) | Self::TooLarge { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            Self::Locked(_) => false,
        }
    }

    pub(super) fn io(tried: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            tried,
            path: path.to_owned(),
            source,
        }
    }
}

impl From<&FileError> for StoreErrorKind {
    fn from(error: &FileError) -> Self {
        match error {
            FileError::Io { source, .. } => Self::from(source),
            FileError::Locked(_) => Self::Locked,
            FileError::NotPlain(_) | FileError::TooLarge { .. } => Self::Damaged,
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Io { source, .. } => source.kind(),
            FileError::Locked(_) => io::ErrorKind::ResourceBusy,
            FileError::NotPlain(_) | FileError::TooLarge { .. } => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}
