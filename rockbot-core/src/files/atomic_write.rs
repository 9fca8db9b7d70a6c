//! A document on its way to the place of another.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::FileError;
use super::system;

/// New contents of a document, in a file beside it. Dropped without [`Draft::publish`], they go away.
#[derive(Debug)]
pub struct Draft {
    temporary: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Writes `bytes` beside `target`, and waits until the disk has them if `sync`.
    pub(super) fn write(target: PathBuf, bytes: &[u8], sync: bool) -> Result<Self, FileError> {
        let mut temporary = target.clone().into_os_string();
        temporary.push(".tmp");
        let draft = Self {
            temporary: temporary.into(),
            target,
        };
        let written = create(&draft.temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            if sync { file.sync_all() } else { Ok(()) }
        });
        written.map_err(FileError::io("written", &draft.temporary))?;
        Ok(draft)
    }

    /// The new contents count as changed at `modified`, when it is known: for what is only tidied up.
    ///
    /// # Errors
    ///
    /// Fails when the system refuses.
    pub fn dated(self, modified: Option<SystemTime>) -> Result<Self, FileError> {
        if let Some(modified) = modified {
            let file = File::options().write(true).open(&self.temporary);
            let dated = file.and_then(|file| file.set_modified(modified));
            dated.map_err(FileError::io("dated", &self.temporary))?;
        }
        Ok(self)
    }

    /// Puts the new contents in the place of the old ones, in one step. A crash leaves either the old ones or the new
    /// ones; which of them survive power loss is certain after [`DataFolder::sync`](super::DataFolder::sync).
    ///
    /// # Errors
    ///
    /// Fails when the system refuses; then the old contents stay.
    pub fn publish(self) -> Result<(), FileError> {
        std::fs::rename(&self.temporary, &self.target).map_err(FileError::io("replaced", &self.target))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `publish` there is nothing left to remove.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// A file that did not exist. What a crash left there, or somebody planted there, is removed, never followed.
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
