//! A file with the list of tasks that one side works on: read at the start, replaced with each
//! change.

use std::path::Path;

use rockbot_core::files::{DataFolder, FileError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum length of the file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The file, if the host has a data folder.
#[derive(Debug, Default)]
pub(super) struct TaskFile(Option<(DataFolder, &'static str)>);

impl TaskFile {
    /// Opens the file `name` of a data folder, and returns the tasks in it. A file that holds no
    /// list of tasks is put aside; the log tells the `loss`, a clause such as "they are not
    /// answered".
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(super) fn open<T: DeserializeOwned>(
        data: Option<&Path>,
        name: &'static str,
        loss: &str,
    ) -> Result<(Self, Vec<T>), FileError> {
        let Some(data) = data else {
            return Ok((Self::default(), Vec::new()));
        };
        let folder = DataFolder::unheld(data);
        let tasks = match folder.read(name, MAX_BYTES)? {
            Some(bytes) => match serde_json::from_slice(&bytes) {
                Ok(tasks) => tasks,
                Err(_) => {
                    let aside = folder.quarantine(name)?;
                    tracing::error!(
                        aside,
                        "tasks of other agents unreadable; the file is put aside, and {loss}"
                    );
                    Vec::new()
                }
            },
            None => Vec::new(),
        };
        Ok((Self(Some((folder, name))), tasks))
    }

    /// Replaces the list.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub(super) fn replace<'a, T: Serialize + 'a>(&self, tasks: impl Iterator<Item = &'a T>) -> Result<(), FileError> {
        let Some((folder, name)) = &self.0 else { return Ok(()) };
        let tasks: Vec<_> = tasks.collect();
        let json = serde_json::to_vec(&tasks).expect("tasks have no maps with keys that are no text");
        folder.replace(name, &json)
    }
}
