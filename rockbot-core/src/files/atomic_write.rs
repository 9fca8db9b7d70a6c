//! Atomic replacement of a file: write beside it, sync, rename.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::FileError;
use super::sync::sync_file;
use super::system;

/// End of the name of a temporary file.
pub(super) const ENDING: &str = ".tmp";

/// The new contents of a document, in a temporary file beside it. Dropped without
/// [`Draft::publish`], the temporary file is removed.
///
/// The order of the steps makes a replacement atomic: the bytes are written and synced *before*
/// the rename, so the name never refers to a file whose contents are not on the disk yet. The
/// rename itself survives a power loss after [`DataFolder::sync`](super::DataFolder::sync).
#[derive(Debug)]
pub struct Draft {
    temporary: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Writes `bytes` beside `target`, and syncs them to the disk if `sync`.
    pub(super) fn write(target: PathBuf, bytes: &[u8], sync: bool) -> Result<Self, FileError> {
        let mut temporary = target.clone().into_os_string();
        temporary.push(ENDING);
        let draft = Self {
            temporary: temporary.into(),
            target,
        };
        let written = create(&draft.temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            // Before the rename: otherwise a power loss could leave the new name with empty contents.
            if sync {
                sync_file(&file, &draft.temporary)
            } else {
                Ok(())
            }
        });
        written.map_err(FileError::io("written", &draft.temporary))?;
        Ok(draft)
    }

    /// Sets the modification time of the new contents, if known: for rewrites that only tidy up and
    /// must not look like an edit.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses.
    pub fn dated(self, modified: Option<SystemTime>) -> Result<Self, FileError> {
        if let Some(modified) = modified {
            let file = File::options().write(true).open(&self.temporary);
            let dated = file.and_then(|file| file.set_modified(modified));
            dated.map_err(FileError::io("dated", &self.temporary))?;
        }
        Ok(self)
    }

    /// Appends `bytes` to the new contents, and syncs them to the disk: the bytes that came while
    /// the rest was written.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses. The draft is of no use then.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let file = File::options().append(true).open(&self.temporary);
        let appended = file.and_then(|mut file| {
            file.write_all(bytes)?;
            sync_file(&file, &self.temporary)
        });
        appended.map_err(FileError::io("written", &self.temporary))
    }

    /// Replaces the old contents by the new contents in one step. A crash leaves either the old or
    /// the new contents; which of them survive a power loss is certain only after
    /// [`DataFolder::sync`](super::DataFolder::sync).
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses; then the old contents stay.
    pub fn publish(self) -> Result<(), FileError> {
        std::fs::rename(&self.temporary, &self.target).map_err(FileError::io("replaced", &self.target))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `publish` the temporary name is gone, and removing it fails; the error means nothing.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Creates a file that did not exist. A file that a crash left there, or a link that another user
/// planted there, is removed and never followed: `create_new` (`O_EXCL`) does not open an
/// existing file.
fn create(path: &Path) -> io::Result<File> {
    let mut options = system::open_options();
    options.write(true).create_new(true);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}
