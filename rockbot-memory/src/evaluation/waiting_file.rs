//! Which sessions wait to be evaluated, in a file.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::files::{DataFolder, without_bom};
use rockbot_core::store::StoreError;

use super::waiting::{Entry, Waiting};
use crate::blocking::{blocking, failed};

const NAME: &str = "waiting.json";

/// More than ten thousand sessions with the longest ids need.
const LIMIT: u64 = 64 << 20;

/// `waiting.json` in a folder of its own: an array of sessions, each with the time of its newest turn.
#[derive(Debug)]
pub(super) struct WaitingFile(Mutex<DataFolder>);

impl WaitingFile {
    /// Opens the folder, and reads what stands in it. A file that cannot be read is set aside.
    pub(super) fn open(folder: PathBuf) -> Result<(Self, Vec<Entry>), StoreError> {
        let cannot = |error| failed("the sessions that wait to be evaluated cannot be read", error);
        let folder = DataFolder::open(folder).map_err(cannot)?;
        let entries = match folder.read(NAME, LIMIT) {
            Ok(None) => Vec::new(),
            Ok(Some(json)) => match serde_json::from_slice(without_bom(&json)) {
                Ok(entries) => entries,
                Err(error) => set_aside(&folder, &error).map_err(cannot)?,
            },
            Err(error) if error.is_damage() => set_aside(&folder, &error).map_err(cannot)?,
            Err(error) => return Err(cannot(error)),
        };
        Ok((Self(Mutex::new(folder)), entries))
    }

    /// Writes what changed, if anything did.
    pub(super) async fn save(self: &Arc<Self>, waiting: &Arc<Waiting>) -> Result<(), StoreError> {
        let (this, waiting) = (self.clone(), waiting.clone());
        blocking(move || {
            // Under the lock, so that the last one to write has the newest.
            let folder = this.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(entries) = waiting.unsaved() else {
                return Ok(());
            };
            let written = serde_json::to_vec_pretty(&entries)
                .map_err(|error| failed("the sessions that wait to be evaluated are no JSON", error))
                .and_then(|json| {
                    let replaced = folder.replace(NAME, &json);
                    replaced.map_err(|error| failed("the sessions that wait to be evaluated cannot be written", error))
                });
            written.inspect_err(|_| waiting.not_saved())
        })
        .await
    }
}

fn set_aside(folder: &DataFolder, error: &dyn std::fmt::Display) -> Result<Vec<Entry>, rockbot_core::files::FileError> {
    let aside = folder.set_aside(NAME)?;
    tracing::warn!(folder = %folder.path().display(), set_aside_as = aside, %error, "sessions that wait cannot be read");
    Ok(Vec::new())
}
