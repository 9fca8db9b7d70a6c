//! The folder of documents, and how they are written.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rockbot_core::files::{DataFolder, FileError, name_of};
use rockbot_core::store::StoreError;
use rockbot_core::{Clock, Principal};

use super::collection::Collection;
use super::document::Document;
use super::stored_document::{FileVersion, StoredDocument};
use crate::storage::blocking::{blocking, failed};
use crate::storage::principal_cache::PrincipalCache;

/// The longest document that is read or written, in bytes.
pub(super) const MAX_BYTES: u64 = 8 << 20;

/// All documents of one kind, in a folder of their own.
#[derive(Debug)]
pub(crate) struct DocumentStore<D: Document> {
    pub(super) folder: DataFolder,
    owned: PrincipalCache<PrincipalDocuments<D>>,
    pub(super) clock: Arc<dyn Clock>,
    damaged: AtomicU64,
}

/// What one principal has.
#[derive(Debug)]
pub(super) struct PrincipalDocuments<D: Document> {
    /// Held by whoever reads or writes files, so that they are read and written one after the other.
    files: Mutex<()>,
    /// Never locked while somebody waits for the disk.
    collection: RwLock<Collection<D>>,
}

impl<D: Document> Default for PrincipalDocuments<D> {
    fn default() -> Self {
        Self {
            files: Mutex::default(),
            collection: RwLock::default(),
        }
    }
}

impl<D: Document> PrincipalDocuments<D> {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Collection<D>> {
        self.collection.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Collection<D>> {
        self.collection.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Document> DocumentStore<D> {
    pub(crate) fn open(folder: PathBuf, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let folder = DataFolder::open(folder);
        Ok(Self {
            folder: folder.map_err(|error| failed(format_args!("the {} folder cannot be opened", D::WHAT), error))?,
            owned: PrincipalCache::default(),
            clock,
            damaged: AtomicU64::new(0),
        })
    }

    /// How many files were set aside since they could not be read.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Looks at the documents of `principal`, after looking for changes by others.
    pub(crate) async fn read<R>(
        self: &Arc<Self>,
        principal: &Principal,
        read: impl FnOnce(&Collection<D>) -> R,
    ) -> Result<R, StoreError> {
        let owned = self.owned.get_or_default(principal);
        let is_stale = owned.read().is_stale(self.clock.now());
        if is_stale {
            let (this, owned, principal) = (self.clone(), owned.clone(), principal.clone());
            blocking(move || {
                let _files = owned.files.lock().unwrap_or_else(PoisonError::into_inner);
                this.rescan(&principal, &owned)
            })
            .await?;
        }
        Ok(read(&owned.read()))
    }

    /// Writes the document that `plan` makes of what stands there, if it makes one. It is asked again when somebody
    /// else changed the file meanwhile.
    pub(crate) async fn write<R: Send + 'static>(
        self: &Arc<Self>,
        principal: &Principal,
        plan: impl Fn(&Collection<D>) -> (Option<Arc<D>>, R) + Send + 'static,
    ) -> Result<R, StoreError> {
        self.work(principal, move |this, principal, owned| {
            loop {
                let (document, result) = plan(&owned.read());
                let Some(document) = document else { return Ok(result) };
                let (before, file) = this.files(principal, owned, &document)?;
                let mut changed = this.refresh(principal, owned, &file)?;
                if let Some(before) = before.as_deref().filter(|before| **before != file) {
                    changed |= this.refresh(principal, owned, before)?;
                }
                if !changed {
                    this.put(owned, document, &file, before.as_deref())?;
                    return Ok(result);
                }
            }
        })
        .await
    }

    /// Removes a document and returns it.
    pub(crate) async fn delete(
        self: &Arc<Self>,
        principal: &Principal,
        key: D::Key,
    ) -> Result<Option<Arc<D>>, StoreError> {
        self.work(principal, move |this, _, owned| {
            let (document, files) = {
                let collection = owned.read();
                (collection.get(&key).cloned(), collection.files_of(&key))
            };
            // The one that counts goes last: what is left after a crash is never an older copy.
            for file in files {
                this.remove(&file)?;
                owned.write().remove(&file);
            }
            Ok(document)
        })
        .await
    }

    /// Runs `work` where it may wait for the disk, with the files of `principal` to itself.
    pub(super) async fn work<R: Send + 'static>(
        self: &Arc<Self>,
        principal: &Principal,
        work: impl FnOnce(&Self, &Principal, &PrincipalDocuments<D>) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let (this, owned, principal) = (self.clone(), self.owned.get_or_default(principal), principal.clone());
        blocking(move || {
            let _files = owned.files.lock().unwrap_or_else(PoisonError::into_inner);
            let is_new = owned.read().is_unscanned();
            if is_new {
                this.rescan(&principal, &owned)?;
            }
            work(&this, &principal, &owned)
        })
        .await
    }

    /// The file in which a document of the same key stands, and the one in which it should stand.
    fn files(
        &self,
        principal: &Principal,
        owned: &PrincipalDocuments<D>,
        document: &D,
    ) -> Result<(Option<String>, String), StoreError> {
        let key = document.key();
        let collection = owned.read();
        let before = collection.file_of(&key).map(ToOwned::to_owned);
        let stays = collection.get(&key).is_some_and(|known| document.stays_with(known));
        if let Some(file) = before.clone().filter(|_| stays) {
            return Ok((before, file));
        }
        let stem = document.stem().and_then(|stem| name_of(principal, &stem));
        let stem = stem.map_err(|error| failed(format_args!("the {} has no file", D::WHAT), error))?;
        Ok((before, format!("{stem}.json")))
    }

    fn put(
        &self,
        owned: &PrincipalDocuments<D>,
        document: Arc<D>,
        file: &str,
        before: Option<&str>,
    ) -> Result<(), StoreError> {
        let failed = |error| self.failed("written", error);
        let other = owned.read().stored(&document.key()).map(|stored| stored.other.clone());
        let stored = StoredDocument {
            document,
            other: other.unwrap_or_default(),
            version: None,
        };
        let json = stored.to_json();
        let json =
            json.map_err(|error| crate::storage::blocking::invalid(format_args!("the {} is no JSON", D::WHAT), error))?;
        if json.len() as u64 > MAX_BYTES {
            let len = format!("{} bytes", json.len());
            return Err(crate::storage::blocking::invalid(
                format_args!("a {} has at most {MAX_BYTES} bytes; shorten it", D::WHAT),
                len,
            ));
        }
        self.folder.replace(file, &json).map_err(failed)?;
        owned.write().put(file, stored);
        if let Some(before) = before.filter(|before| *before != file) {
            self.remove(before)?;
            owned.write().remove(before);
        }
        Ok(())
    }

    pub(super) fn remove(&self, file: &str) -> Result<(), StoreError> {
        let removed = self.folder.remove(file);
        removed.map(drop).map_err(|error| self.failed("removed", error))
    }

    /// Reads a file again that is about to be written, if somebody else changed it. Returns whether that changed
    /// anything.
    pub(super) fn refresh(
        &self,
        principal: &Principal,
        owned: &PrincipalDocuments<D>,
        file: &str,
    ) -> Result<bool, StoreError> {
        let found = match self.folder.find(file) {
            Ok(found) => found,
            // A link or folder at its place.
            Err(error) if error.is_damage() => return self.quarantine(owned, file, &error),
            Err(error) => return Err(self.failed("read", error)),
        };
        let known = owned.read().in_file(file).and_then(|stored| stored.version);
        let Some(found) = found else {
            return Ok(Self::forget(owned, file));
        };
        if known == Some(FileVersion::from(&found)) {
            return Ok(false);
        }
        match self.parse(principal, &found) {
            Ok(None) => Ok(Self::forget(owned, file)),
            Ok(Some(stored)) => {
                let is_new = owned
                    .read()
                    .in_file(file)
                    .is_none_or(|known| !known.has_same_content_as(&stored));
                owned.write().put(file, stored);
                Ok(is_new)
            }
            Err(Unreadable::Damaged(error)) => self.quarantine(owned, file, &error),
            Err(Unreadable::Failed(error)) => Err(error),
        }
    }

    fn forget(owned: &PrincipalDocuments<D>, file: &str) -> bool {
        let was_there = owned.read().in_file(file).is_some();
        owned.write().remove(file);
        was_there
    }

    pub(super) fn quarantine(
        &self,
        owned: &PrincipalDocuments<D>,
        file: &str,
        error: &dyn Display,
    ) -> Result<bool, StoreError> {
        let aside = self.folder.set_aside(file);
        let aside = aside.map_err(|error| self.failed("set aside, though it is damaged", error))?;
        self.damaged.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().display();
        tracing::warn!(%folder, file, set_aside_as = aside, %error, "a {} is damaged and is not used", D::WHAT);
        Ok(Self::forget(owned, file))
    }

    pub(super) fn failed(&self, tried: &str, error: FileError) -> StoreError {
        failed(format_args!("a {} cannot be {tried}", D::WHAT), error)
    }
}

/// Why a file gives no document.
pub(super) enum Unreadable {
    /// It never will.
    Damaged(String),
    /// It may another time.
    Failed(StoreError),
}
