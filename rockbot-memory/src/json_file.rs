//! A JSON document that is read when it is opened, and from then on only replaced as a whole.

use std::fmt::Display;
use std::path::PathBuf;

use rockbot_core::files::{DataFolder, FileError, without_bom};
use rockbot_core::store::StoreError;
use rockbot_store::kit::{failed, invalid, open_folder};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum size of a document in bytes: more than ten thousand entries with ids of maximum length.
const MAX_BYTES: u64 = 64 << 20;

/// A JSON document in a locked folder of its own, which one process at a time can open.
#[derive(Debug)]
pub(crate) struct JsonFile {
    folder: DataFolder,
    name: &'static str,
    /// The noun phrase for the content in errors and logs, in the plural.
    what: &'static str,
}

impl JsonFile {
    /// Opens the folder and reads the document. A damaged file is quarantined as `….damaged`, and the
    /// default is returned: losing it costs less than not starting.
    pub(crate) fn open<T: DeserializeOwned + Default>(
        folder: PathBuf,
        name: &'static str,
        what: &'static str,
    ) -> Result<(Self, T), StoreError> {
        let cannot = |error| failed(format_args!("{what} cannot be read"), error);
        let folder = open_folder(folder, what, |file| file == name)?;
        let file = Self { folder, name, what };
        let value = match file.folder.read(name, MAX_BYTES) {
            Ok(None) => T::default(),
            Ok(Some(json)) => match serde_json::from_slice(without_bom(&json)) {
                Ok(value) => value,
                Err(error) => file.quarantine(&error).map_err(cannot)?,
            },
            Err(error) if error.is_damage() => file.quarantine(&error).map_err(cannot)?,
            Err(error) => return Err(cannot(error)),
        };
        Ok((file, value))
    }

    /// Replaces the document atomically, and returns once it is synced to disk.
    pub(crate) fn write(&self, value: &impl Serialize) -> Result<(), StoreError> {
        let what = self.what;
        let json = serde_json::to_vec_pretty(value);
        let json = json.map_err(|error| invalid(format_args!("{what} cannot be serialized as JSON"), error))?;
        let replaced = self.folder.replace(self.name, &json);
        replaced.map_err(|error| failed(format_args!("{what} cannot be written"), error))
    }

    /// Moves the file out of the way and returns the default value.
    fn quarantine<T: Default>(&self, error: &dyn Display) -> Result<T, FileError> {
        let moved = self.folder.quarantine(self.name)?;
        let folder = self.folder.path().display();
        tracing::warn!(%folder, quarantined_as = moved, %error, "{} cannot be read; the file was quarantined", self.what);
        Ok(T::default())
    }
}
