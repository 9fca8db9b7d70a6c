//! Opening files without following symbolic links.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use super::error::FileError;
use super::system;

/// Opens a plain file, and creates it if it is missing and `may_make` allows it. Never follows a
/// link at its path.
pub(super) fn open_plain(
    path: &Path,
    options: &OpenOptions,
    may_make: bool,
) -> Result<Option<(File, Metadata)>, FileError> {
    let failed = || FileError::io("opened", path);
    let seen = match std::fs::symlink_metadata(path) {
        Ok(seen) => seen,
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_make => {
            // `create_new` fails on a link, even on a dangling one, so a planted link is not followed here
            // either.
            let file = options.clone().create_new(true).open(path).map_err(failed())?;
            let metadata = file.metadata().map_err(failed())?;
            return Ok(Some((file, metadata)));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed()(error)),
    };
    if !seen.is_file() {
        return Err(FileError::NotPlain(path.to_owned()));
    }
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed())?,
    };
    let opened = file.metadata().map_err(failed())?;
    // Compares the opened file with the file that was checked: a link that was planted in between
    // leads to another file.
    if !system::is_same_file(&seen, &opened) {
        return Err(FileError::NotPlain(path.to_owned()));
    }
    Ok(Some((file, opened)))
}
