//! Persists the queue of sessions to evaluate.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::store::StoreError;
use rockbot_store::kit::blocking;

use super::queue::{EvaluationQueue, QueueEntry};
use crate::json_file::JsonFile;

/// `waiting.json` in a folder of its own: an array of sessions, each with the time of its newest
/// turn.
#[derive(Debug)]
pub(super) struct QueueFile(Mutex<JsonFile>);

impl QueueFile {
    /// Opens the folder, and reads the file. An unreadable file is quarantined.
    pub(super) fn open(folder: PathBuf) -> Result<(Self, Vec<QueueEntry>), StoreError> {
        let (file, entries) = JsonFile::open(folder, "waiting.json", "the sessions that wait to be evaluated")?;
        Ok((Self(Mutex::new(file)), entries))
    }

    /// Saves the queue, if it has changed.
    pub(super) async fn save(self: &Arc<Self>, queue: &Arc<EvaluationQueue>) -> Result<(), StoreError> {
        let this = self.clone();
        let queue = queue.clone();
        blocking(move || {
            // Taken before the snapshot, so that the last writer writes the newest state.
            let file = this.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(entries) = queue.unsaved() else {
                return Ok(());
            };
            file.write(&entries).inspect_err(|_| queue.not_saved())
        })
        .await
    }
}
