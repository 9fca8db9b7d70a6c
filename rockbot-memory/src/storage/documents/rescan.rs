//! Rescan of a folder for external edits.

use std::collections::BTreeSet;
use std::time::Instant;

use rockbot_core::Principal;
use rockbot_core::files::{FileEntry, owner_of};
use rockbot_core::store::StoreError;

use super::document::Document;
use super::store::{DocumentStore, MAX_BYTES, PrincipalDocuments, Unreadable};
use super::stored_document::{FileVersion, StoredDocument};

impl<D: Document> DocumentStore<D> {
    /// Reads the files that are new or changed since the last rescan, and drops those that are gone. The caller
    /// holds the file lock of `principal`.
    pub(super) fn rescan(&self, principal: &Principal, owned: &PrincipalDocuments<D>) -> Result<(), StoreError> {
        let now = self.clock.now();
        if !owned.read().is_stale(now) {
            // Another caller rescanned while this one waited for the lock.
            return Ok(());
        }
        let began = Instant::now();
        let found = self.folder.list_of(principal);
        let mut found = found.map_err(|error| self.failed("listed", error))?;
        found.retain(|found| found.name.ends_with(".json"));
        Self::forget_missing(owned, &found);
        for found in &found {
            self.rescan_file(principal, owned, found)?;
        }
        owned.write().mark_scanned(now, began.elapsed());
        Ok(())
    }

    /// Drops the documents whose files are gone.
    fn forget_missing(owned: &PrincipalDocuments<D>, found: &[FileEntry]) {
        let names: BTreeSet<_> = found.iter().map(|found| &found.name).collect();
        let mut collection = owned.write();
        let missing = collection.files().filter(|(file, _)| !names.contains(file));
        let missing: Vec<_> = missing.map(|(file, _)| file.clone()).collect();
        missing.iter().for_each(|file| collection.remove(file));
        collection.suspects.retain(|file, _| names.contains(file));
    }

    /// Reads one file if its version differs from the known one.
    fn rescan_file(
        &self,
        principal: &Principal,
        owned: &PrincipalDocuments<D>,
        found: &FileEntry,
    ) -> Result<(), StoreError> {
        let (file, version) = (&found.name, FileVersion::from(found));
        let known = owned.read().in_file(file).and_then(|stored| stored.version);
        if known == Some(version) {
            return Ok(());
        }
        match self.parse(principal, found) {
            Ok(Some(stored)) => {
                let mut collection = owned.write();
                collection.suspects.remove(file);
                collection.put(file, stored);
            }
            Ok(None) => owned.write().remove(file),
            Err(Unreadable::Damaged(error)) => {
                // A file that just became unreadable may be half-written by an editor; one that stays so is damaged. At
                // the first scan there is no earlier valid version that could come back.
                let is_known = owned.write().suspects.insert(file.clone(), version) == Some(version);
                let is_new = owned.read().is_unscanned();
                if is_known || is_new {
                    self.quarantine(owned, file, &error)?;
                }
            }
            // The next rescan tries again.
            Err(Unreadable::Failed(error)) => {
                tracing::warn!(file, %error, "a {} cannot be read now and is left out until the next rescan", D::WHAT)
            }
        }
        Ok(())
    }

    /// Reads and parses a file; `None` if it is gone by now.
    pub(super) fn parse(
        &self,
        principal: &Principal,
        found: &FileEntry,
    ) -> Result<Option<StoredDocument<D>>, Unreadable> {
        let read = self.folder.read(&found.name, MAX_BYTES);
        let json = match read {
            Ok(Some(json)) => json,
            Ok(None) => return Ok(None),
            Err(error) if error.is_damage() => return Err(Unreadable::Damaged(error.to_string())),
            Err(error) => return Err(Unreadable::Failed(self.failed("read", error))),
        };
        let owned = owner_of(&found.name).filter(|(owner, _)| owner == principal);
        let name = owned.map_or(&*found.name, |(_, name)| name);
        let stem = name.strip_suffix(".json").unwrap_or(name);
        let stored = StoredDocument::parse(&json, stem, FileVersion::from(found));
        stored.map(Some).map_err(|error| Unreadable::Damaged(error.to_string()))
    }
}
