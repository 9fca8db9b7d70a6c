//! Purge of expired documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use rockbot_core::files::owner_of;
use rockbot_core::store::StoreError;
use rockbot_core::{Principal, Timestamp};

use super::document::Document;
use super::store::{DocumentStore, PrincipalDocuments};
use crate::storage::blocking::blocking;
use crate::storage::external_edit::is_changed_since;

/// Maximum number of documents that are purged under one hold of the principal's file lock, so
/// that writers do not starve.
const BATCH: usize = 100;

/// Returns the time when a document expired, or `None` if it has not.
type ExpiredAt<D> = fn(&D) -> Option<Timestamp>;

impl<D: Document> DocumentStore<D> {
    /// Removes the documents of all principals that expired before `before`, and returns their number.
    ///
    /// Documents that were edited after they expired stay, and so do documents with several files: of
    /// copies that a person made it is unknown which ones may go.
    pub(crate) async fn purge(self: &Arc<Self>, before: Timestamp, ended: ExpiredAt<D>) -> Result<u64, StoreError> {
        let this = self.clone();
        let mut gone = 0;
        for owner in blocking(move || this.owners()).await? {
            let over = move |document: &D| ended(document).filter(|at| *at < before);
            let keys = move |owned: &PrincipalDocuments<D>| -> Vec<D::Key> {
                let collection = owned.read();
                let over = collection.documents().filter(|document| over(document).is_some());
                over.map(|document| document.key()).collect()
            };
            let keys = self.work(&owner, move |_, _, owned| Ok(keys(owned))).await?;
            for keys in keys.chunks(BATCH) {
                let keys = keys.to_vec();
                let purge = move |this: &Self, principal: &Principal, owned: &PrincipalDocuments<D>| {
                    keys.iter().try_fold(0, |gone, key| {
                        Ok(gone + u64::from(this.purge_one(principal, owned, key, over)?))
                    })
                };
                gone += self.work(&owner, purge).await?;
            }
        }
        Ok(gone)
    }

    /// Returns the principals that have files, also principals that are not in memory.
    fn owners(&self) -> Result<BTreeSet<Principal>, StoreError> {
        let found = self.folder.list("").map_err(|error| self.failed("listed", error))?;
        let owners = found.iter().filter_map(|found| owner_of(&found.name));
        Ok(owners.map(|(owner, _)| owner).collect())
    }

    /// Removes one document, after checking its file again for an edit since the last rescan.
    fn purge_one(
        &self,
        principal: &Principal,
        owned: &PrincipalDocuments<D>,
        key: &D::Key,
        over: impl Fn(&D) -> Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let files = owned.read().files_of(key);
        let [file] = &*files else { return Ok(false) };
        self.refresh(principal, owned, file)?;
        let ended = owned.read().in_file(file).and_then(|stored| over(&stored.document));
        let found = self.folder.find(file).map_err(|error| self.failed("read", error))?;
        let (Some(ended), Some(found)) = (ended, found) else {
            return Ok(false);
        };
        if is_changed_since(&found, ended) {
            return Ok(false);
        }
        self.remove(file)?;
        owned.write().remove(file);
        Ok(true)
    }
}
