//! Looking for what others changed.

use std::collections::BTreeSet;
use std::time::Instant;

use rockbot_core::Principal;
use rockbot_core::files::{Found, owner_of};
use rockbot_core::store::StoreError;

use super::document::Document;
use super::store::{Documents, MAX_BYTES, Owned, Unreadable};
use super::stored_document::{FileVersion, StoredDocument};

impl<D: Document> Documents<D> {
    /// Reads what is new or changed since the last look, and forgets what is gone. The caller holds the files.
    pub(super) fn look(&self, principal: &Principal, owned: &Owned<D>) -> Result<(), StoreError> {
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
            self.look_at(principal, owned, found)?;
        }
        owned.write().looked(now, began.elapsed());
        Ok(())
    }

    /// Removes what a crash left of writing, when the folder is read first: then nobody writes.
    fn remove_drafts(&self, owned: &Owned<D>, found: &[Found]) -> Result<(), StoreError> {
        let is_new = owned.read().is_new();
        let drafts = found.iter().filter(|found| is_new && found.name.ends_with(".json.tmp"));
        for draft in drafts {
            self.remove(&draft.name)?;
        }
        Ok(())
    }

    fn forget_missing(owned: &Owned<D>, found: &[Found]) {
        let names: BTreeSet<_> = found.iter().map(|found| &found.name).collect();
        let mut collection = owned.write();
        let missing = collection.files().filter(|(file, _)| !names.contains(file));
        let missing: Vec<_> = missing.map(|(file, _)| file.clone()).collect();
        missing.iter().for_each(|file| collection.take(file));
        collection.suspects.retain(|file, _| names.contains(file));
    }

    fn look_at(&self, principal: &Principal, owned: &Owned<D>, found: &Found) -> Result<(), StoreError> {
        let (file, stamp) = (&found.name, FileVersion::from(found));
        let known = owned.read().in_file(file).and_then(|sheet| sheet.stamp);
        if known == Some(stamp) {
            return Ok(());
        }
        match self.parse(principal, found) {
            Ok(Some(sheet)) => {
                let mut collection = owned.write();
                collection.suspects.remove(file);
                collection.put(file, sheet);
            }
            Ok(None) => owned.write().take(file),
            Err(Unreadable::Damaged(error)) => {
                let is_known = owned.write().suspects.insert(file.clone(), stamp) == Some(stamp);
                let is_new = owned.read().is_new();
                if is_known || is_new {
                    self.set_aside(owned, file, &error)?;
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
        let sheet = StoredDocument::parse(&json, stem, FileVersion::from(found));
        sheet.map(Some).map_err(|error| Unreadable::Damaged(error.to_string()))
    }
}
