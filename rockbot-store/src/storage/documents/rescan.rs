//! Rescan of a folder for external edits.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use rockbot_core::Principal;
use rockbot_core::files::{FileEntry, owner_of};
use rockbot_core::store::StoreError;

use super::document::{Document, MAX_BYTES};
use super::store::{DocumentStore, PrincipalDocuments, Unreadable};
use super::stored_document::{FileVersion, StoredDocument};

/// Time between a read and the rescan that it begins in the background.
const PAUSE: Duration = Duration::from_millis(100);

impl<D: Document> DocumentStore<D> {
    /// Reads the files that are new or changed since the last rescan, and drops the documents of
    /// files that are gone. The caller does not hold the file lock, which is taken for one file at a
    /// time.
    pub(super) fn rescan(&self, principal: &Principal, owned: &PrincipalDocuments<D>) -> Result<(), StoreError> {
        let _rescan = owned.lock_rescan();
        self.rescan_held(principal, owned)
    }

    /// Rescans after a pause that holds other rescans off.
    ///
    /// A read begins this. Looking at thousands of files takes a core for tens of milliseconds, and
    /// the message of that read needs the core for one: by the end of the pause it mostly waits for
    /// its model.
    pub(super) fn rescan_later(&self, principal: &Principal, owned: &PrincipalDocuments<D>) -> Result<(), StoreError> {
        let _rescan = owned.lock_rescan();
        thread::sleep(PAUSE);
        self.rescan_held(principal, owned)
    }

    /// Rescans unless another caller did while this one waited for the lock, which it holds.
    fn rescan_held(&self, principal: &Principal, owned: &PrincipalDocuments<D>) -> Result<(), StoreError> {
        let now = self.clock.now();
        if !owned.freshness.is_stale(now) {
            return Ok(());
        }
        let began = Instant::now();
        let found = self.folder.list_of(principal);
        let mut found = found.map_err(|error| self.failed("listed", error))?;
        found.retain(|found| found.name.ends_with(".json"));
        self.forget_missing(owned, &found);
        if owned.freshness.is_unscanned() {
            self.first_scan(principal, owned, found)?
        } else {
            self.scan_changed(principal, owned, &found)?
        }
        owned.freshness.mark_scanned(now, began.elapsed());
        Ok(())
    }

    /// Reads the files whose versions differ from the known ones.
    fn scan_changed(
        &self,
        principal: &Principal,
        owned: &PrincipalDocuments<D>,
        found: &[FileEntry],
    ) -> Result<(), StoreError> {
        for found in found {
            let known = owned.read().in_file(&found.name).and_then(|stored| stored.version);
            if known != Some(FileVersion::from(found)) {
                self.rescan_file(principal, owned, found)?;
            }
        }
        Ok(())
    }

    /// Drops the documents whose files are gone.
    fn forget_missing(&self, owned: &PrincipalDocuments<D>, found: &[FileEntry]) {
        let names: HashSet<_> = found.iter().map(|found| &*found.name).collect();
        let is_gone = |file: &String| !names.contains(&**file);
        let missing: Vec<_> = {
            let collection = owned.read();
            let missing = collection.files().map(|(file, _)| file).filter(|file| is_gone(file));
            missing.cloned().collect()
        };
        for file in missing {
            let _files = owned.lock_files();
            // A file that this process wrote after the folder was listed is not missing.
            if !matches!(self.folder.find(&file), Ok(Some(_))) {
                owned.write().remove(&file);
            }
        }
        if !owned.read().suspects.is_empty() {
            owned.write().suspects.retain(|file, _| !is_gone(file));
        }
    }

    /// Reads one file whose version differs from the known one.
    fn rescan_file(
        &self,
        principal: &Principal,
        owned: &PrincipalDocuments<D>,
        listed: &FileEntry,
    ) -> Result<(), StoreError> {
        let _files = owned.lock_files();
        // A file that this process wrote after the folder was listed has another version by now.
        let Ok(Some(found)) = self.folder.find(&listed.name) else {
            return Ok(());
        };
        let file = &found.name;
        let version = FileVersion::from(&found);
        match self.parse(principal, &found) {
            Err(Unreadable::Damaged(error)) => {
                // A file that just became unreadable may be half-written by an editor; a file that stays
                // unreadable is damaged. The lock ends with this statement: the quarantine takes it again.
                let is_known = owned.write().suspects.insert(file.clone(), version) == Some(version);
                if is_known {
                    self.quarantine(owned, file, &error).map(drop)
                } else {
                    Ok(())
                }
            }
            parsed => self.apply(owned, file, parsed),
        }
    }

    /// Replaces the known document of a file by the document that was read from it. A damaged file is
    /// quarantined.
    pub(super) fn apply(
        &self,
        owned: &PrincipalDocuments<D>,
        file: &str,
        parsed: Result<Option<StoredDocument<D>>, Unreadable>,
    ) -> Result<(), StoreError> {
        match parsed {
            Ok(Some(stored)) => {
                let mut collection = owned.write();
                collection.suspects.remove(file);
                collection.put(file, stored);
            }
            Ok(None) => owned.write().remove(file),
            Err(Unreadable::Damaged(error)) => drop(self.quarantine(owned, file, &error)?),
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
        let read = self.folder.read(&found.name, MAX_BYTES as u64);
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
