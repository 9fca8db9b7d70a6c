//! Opening the folder of a store.

use std::fmt::Display;
use std::path::PathBuf;

use rockbot_core::files::DataFolder;
use rockbot_core::store::StoreError;

use super::blocking::failed;

/// Opens and locks a folder, and removes files that `is_ours` accepts and that killed processes
/// left. `what` is the noun phrase for the folder's content in errors.
pub fn open_folder(
    path: PathBuf,
    what: impl Display,
    is_ours: impl Fn(&str) -> bool,
) -> Result<DataFolder, StoreError> {
    let folder = DataFolder::open(path).map_err(|error| failed(format_args!("{what} cannot be opened"), error))?;
    folder.remove_drafts(|_| true, is_ours);
    Ok(folder)
}

/// Returns the last segment of the name of a file.
pub fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
