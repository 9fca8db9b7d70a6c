//! Syncs of files and folders to the disk.

use std::fs::File;
use std::io;
use std::path::Path;

use super::error::FileError;
use super::system;

/// Syncs the bytes of `file`, which was opened at `path`.
pub(super) fn sync_file(file: &File, path: &Path) -> io::Result<()> {
    check(path)?;
    file.sync_data()
}

/// Syncs the names in `folder`.
pub(super) fn sync_names(folder: &Path) -> Result<(), FileError> {
    let synced = check(folder).and_then(|()| system::sync_folder(folder));
    synced.map_err(|cause| FileError::NotDurable {
        path: folder.to_owned(),
        cause,
    })
}

/// Returns an error if a test lets the syncs of `path` fail.
fn check(path: &Path) -> io::Result<()> {
    #[cfg(any(test, feature = "testing"))]
    super::faults::check(path)?;
    let _ = path;
    Ok(())
}
