//! Looking for what others changed.

use std::collections::BTreeSet;
use std::time::Instant;

use rockbot_core::Principal;
use rockbot_core::files::{Found, owner_of};
use rockbot_core::store::StoreError;

use super::document::Document;
use super::store::{DocumentStore, MAX_BYTES, PrincipalDocuments, Unreadable};
use super::stored_document::{FileVersion, StoredDocument};

impl<D: Document> DocumentStore<D> {
    /// Reads what is new or changed since the last look, and forgets what is gone. The caller holds the files.
    pub(super) fn rescan(&self, principal: &Principal, owned: &PrincipalDocuments<D>) -> Result<(), StoreError> {
        let now = self.clock.now();
        if !owned.read().is_stale(now) {
            // Somebody else just did.
            return Ok(());
        }
        let began = Instant::now();
        let found = self.folder.list_of(principal);
        let mut found = found.map_err(|error| self.failed("listed", error))?;
        self.remove_drafts(owned, &found)?;
        found.retain(|found| found.name.ends_with(".json"));
        Self::forget_missing(owned, &found);
        for found in &found {
            self.rescan_file(principal, owned, found)?;
        }
        owned.write().mark_scanned(now, began.elapsed());
        Ok(())
    }

    /// Removes what a crash left of writing, when the folder is read first: then nobody writes.
    fn remove_drafts(&self, owned: &PrincipalDocuments<D>, found: &[Found]) -> Result<(), StoreError> {
        let is_new = owned.read().is_unscanned();
        let drafts = found.iter().filter(|found| is_new && found.name.ends_with(".json.tmp"));
        for draft in drafts {
            self.remove(&draft.name)?;
        }
        Ok(())
    }

    fn forget_missing(owned: &PrincipalDocuments<D>, found: &[Found]) {
        let names: BTreeSet<_> = found.iter().map(|found| &found.name).collect();
        let mut collection = owned.write();
        let missing = collection.files().filter(|(file, _)| !names.contains(file));
        let missing: Vec<_> = missing.map(|(file, _)| file.clone()).collect();
        missing.iter().for_each(|file| collection.remove(file));
        collection.suspects.retain(|file, _| names.contains(file));
    }

    fn rescan_file(
        &self,
        principal: &Principal,
        owned: &PrincipalDocuments<D>,
        found: &Found,
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
                let is_known = owned.write().suspects.insert(file.clone(), version) == Some(version);
                let is_new = owned.read().is_unscanned();
                if is_known || is_new {
                    self.quarantine(owned, file, &error)?;
                }
            }
            // It is tried again at the next look.
            Err(Unreadable::Failed(error)) => tracing::warn!(file, %error, "a {} is left out", D::WHAT),
        }
        Ok(())
    }

    pub(super) fn parse(&self, principal: &Principal, found: &Found) -> Result<Option<StoredDocument<D>>, Unreadable> {
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
