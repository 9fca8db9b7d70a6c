//! Which sessions wait to be evaluated, in a file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::store::StoreError;

use super::waiting::{Entry, Waiting};
use crate::storage::blocking::blocking;
use crate::storage::json_file::JsonFile;

/// `waiting.json` in a folder of its own: an array of sessions, each with the time of its newest turn.
#[derive(Debug)]
pub(super) struct WaitingFile(Mutex<JsonFile>);

impl WaitingFile {
    /// Opens the folder, and reads what stands in it. A file that cannot be read is set aside.
    pub(super) fn open(folder: PathBuf) -> Result<(Self, Vec<Entry>), StoreError> {
        let (file, entries) = JsonFile::open(folder, "waiting.json", "the sessions that wait to be evaluated")?;
        Ok((Self(Mutex::new(file)), entries))
    }

    /// Writes what changed, if anything did.
    pub(super) async fn save(self: &Arc<Self>, waiting: &Arc<Waiting>) -> Result<(), StoreError> {
        let (this, waiting) = (self.clone(), waiting.clone());
        blocking(move || {
            // Under the lock, so that the last one to write has the newest.
            let file = this.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(entries) = waiting.unsaved() else {
                return Ok(());
            };
            file.write(&entries).inspect_err(|_| waiting.not_saved())
        })
        .await
    }
}
