//! The folder of documents: locking, reads and writes.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use rockbot_core::files::{DataFolder, FileError, name_of};
use rockbot_core::store::StoreError;
use rockbot_core::{Clock, Principal};

use super::collection::Collection;
use super::document::{Document, MAX_BYTES};
use super::freshness::Freshness;
use super::stored_document::{FileVersion, StoredDocument};
use crate::storage::blocking::{blocking, failed, invalid};
use crate::storage::folder::open_folder;
use crate::storage::principal_cache::PrincipalCache;

/// Maximum number of files in a folder whose rescan a read waits for, which takes about a
/// millisecond then.
const MAX_AWAITED_FILES: usize = 200;

/// All documents of one type, in a locked folder of their own.
///
/// Three locks for each principal, taken in this order: `rescan` serializes rescans; `files`
/// serializes the reads and writes of files, one at a time, so that a write does not wait for a
/// whole rescan. Both may be held for as long as the disk takes, on blocking threads only.
/// `collection` guards the documents in memory and is never held during I/O, so that searches go
/// on while a write waits for the disk.
#[derive(Debug)]
pub(crate) struct DocumentStore<D: Document> {
    pub(super) folder: DataFolder,
    owned: PrincipalCache<PrincipalDocuments<D>>,
    pub(super) clock: Arc<dyn Clock>,
    damaged: AtomicU64,
}

/// The documents of one principal, and the locks around them.
#[derive(Debug)]
pub(super) struct PrincipalDocuments<D: Document> {
    /// Held for the whole of a rescan.
    rescan: Mutex<()>,
    /// Held while one file is read or written.
    files: Mutex<()>,
    /// Never locked during file I/O.
    collection: RwLock<Collection<D>>,
    pub(super) freshness: Freshness,
}

impl<D: Document> Default for PrincipalDocuments<D> {
    fn default() -> Self {
        Self {
            rescan: Mutex::default(),
            files: Mutex::default(),
            collection: RwLock::default(),
            freshness: Freshness::default(),
        }
    }
}

impl<D: Document> PrincipalDocuments<D> {
    pub(super) fn lock_rescan(&self) -> MutexGuard<'_, ()> {
        self.rescan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_rescanning(&self) -> bool {
        matches!(self.rescan.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Returns `true` if a read waits for a rescan: for the first rescan, and for the rescans of a
    /// small folder.
    fn rescan_is_awaited(&self) -> bool {
        self.freshness.is_unscanned() || self.read().file_count() <= MAX_AWAITED_FILES
    }

    pub(super) fn lock_files(&self) -> MutexGuard<'_, ()> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Collection<D>> {
        self.collection.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Collection<D>> {
        self.collection.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Document> DocumentStore<D> {
    /// Opens `folder`, creating it if it is missing, and locks it against other processes.
    pub(crate) fn open(folder: PathBuf, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let what = format_args!("the {} folder", D::WHAT);
        Ok(Self {
            folder: open_folder(folder, what, |name| name.ends_with(".json"))?,
            owned: PrincipalCache::default(),
            clock,
            damaged: AtomicU64::new(0),
        })
    }

    /// Returns the number of files that were quarantined since the store was opened.
    pub(crate) fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Calls `read` with the documents of `principal`.
    ///
    /// If the last rescan is stale, a new rescan begins. The call waits for the first rescan and for
    /// the rescans of small folders; a large folder is rescanned in the background, and its documents
    /// are read as they were known.
    pub(crate) async fn read<R>(
        self: &Arc<Self>,
        principal: &Principal,
        read: impl FnOnce(&Collection<D>) -> R,
    ) -> Result<R, StoreError> {
        let owned = self.owned.get_or_default(principal);
        let (is_stale, is_awaited) = {
            let freshness = &owned.freshness;
            (freshness.is_stale(self.clock.now()), owned.rescan_is_awaited())
        };
        if is_stale && is_awaited {
            let this = self.clone();
            let owned = owned.clone();
            let principal = principal.clone();
            blocking(move || this.rescan(&principal, &owned)).await?;
        } else if is_stale && !owned.is_rescanning() {
            self.rescan_in_background(principal, &owned);
        }
        Ok(read(&owned.read()))
    }

    /// Begins a rescan a little later. If it fails, the next read begins another rescan.
    fn rescan_in_background(self: &Arc<Self>, principal: &Principal, owned: &Arc<PrincipalDocuments<D>>) {
        let this = self.clone();
        let owned = owned.clone();
        let principal = principal.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = this.rescan_later(&principal, &owned) {
                tracing::warn!(%error, "the folder of {}s cannot be rescanned; edits of other programs are not seen", D::WHAT);
            }
        });
    }

    /// Calls `read` as [`read`](Self::read) does, on a blocking thread: for work that takes its time.
    pub(crate) async fn read_aside<R: Send + 'static>(
        self: &Arc<Self>,
        principal: &Principal,
        read: impl FnOnce(&Collection<D>) -> R + Send + 'static,
    ) -> Result<R, StoreError> {
        self.read(principal, |_| ()).await?;
        let owned = self.owned.get_or_default(principal);
        blocking(move || Ok(read(&owned.read()))).await
    }

    /// Writes the document that `plan` makes of the current ones, if it makes one.
    ///
    /// Optimistic concurrency against external edits: if a file involved changed since it was read,
    /// the edit is read and `plan` is called again. Other writers of this process wait for the file
    /// lock. Between the check and the rename an edit can still be lost; no file system offers a
    /// compare-and-swap that would close this window.
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

    /// Removes a document with all its copies, and returns it.
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
            // The current file is removed last: after a crash in between, an older copy never becomes current.
            for file in files {
                this.remove(&file)?;
                owned.write().remove(&file);
            }
            Ok(document)
        })
        .await
    }

    /// Runs `work` on a blocking thread, holding the file lock of `principal`.
    pub(super) async fn work<R: Send + 'static>(
        self: &Arc<Self>,
        principal: &Principal,
        work: impl FnOnce(&Self, &Principal, &PrincipalDocuments<D>) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let this = self.clone();
        let owned = self.owned.get_or_default(principal);
        let principal = principal.clone();
        blocking(move || {
            let is_new = owned.freshness.is_unscanned();
            if is_new {
                this.rescan(&principal, &owned)?;
            }
            let _files = owned.lock_files();
            work(&this, &principal, &owned)
        })
        .await
    }

    /// Returns the current file of the document's key, if any, and the file that `document` belongs in.
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

    /// Writes `document` to `file`, and removes `before`, its previous file, if that is another file.
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
            json.map_err(|error| invalid(format_args!("the {} cannot be serialized as JSON", D::WHAT), error))?;
        if json.len() > MAX_BYTES {
            let len = format!("{} bytes", json.len());
            return Err(invalid(
                format_args!("a {} has at most {MAX_BYTES} bytes; shorten it", D::WHAT),
                len,
            ));
        }
        // Synced and renamed: a crash leaves the old or the new document. The old file of a moved
        // document is removed afterwards, so a crash in between leaves two copies; the newer copy is
        // current. A document that cannot be synced is visible all the same: memory shows the state of
        // the files, and the old file stays.
        let written = self.folder.replace(file, &json);
        if matches!(written, Ok(()) | Err(FileError::NotDurable { .. })) {
            owned.write().put(file, stored);
        }
        written.map_err(failed)?;
        if let Some(before) = before.filter(|before| *before != file) {
            self.remove(before)?;
            owned.write().remove(before);
        }
        Ok(())
    }

    /// Removes a file. It is no error if the file is gone already.
    pub(super) fn remove(&self, file: &str) -> Result<(), StoreError> {
        let removed = self.folder.remove(file);
        removed.map(drop).map_err(|error| self.failed("removed", error))
    }

    /// Reads `file`, which is about to be written, again if its version changed. Returns `true` if
    /// its content did.
    pub(super) fn refresh(
        &self,
        principal: &Principal,
        owned: &PrincipalDocuments<D>,
        file: &str,
    ) -> Result<bool, StoreError> {
        let found = match self.folder.find(file) {
            Ok(found) => found,
            // A symbolic link or a folder occupies the path.
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

    /// Drops the document of `file` from memory. Returns `true` if there was one.
    fn forget(owned: &PrincipalDocuments<D>, file: &str) -> bool {
        let was_there = owned.read().in_file(file).is_some();
        owned.write().remove(file);
        was_there
    }

    /// Renames `file` to `….damaged` and drops its document. Returns `true` if there was one.
    pub(super) fn quarantine(
        &self,
        owned: &PrincipalDocuments<D>,
        file: &str,
        error: &dyn Display,
    ) -> Result<bool, StoreError> {
        let moved = self.folder.quarantine(file);
        let moved = moved.map_err(|error| self.failed("quarantined, though its file is damaged", error))?;
        self.damaged.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().display();
        tracing::warn!(%folder, file, quarantined_as = moved, %error, "the file of a {} is damaged and was quarantined", D::WHAT);
        Ok(Self::forget(owned, file))
    }

    /// Returns the error of a failed operation on a file.
    pub(super) fn failed(&self, tried: &str, error: FileError) -> StoreError {
        failed(format_args!("a {} cannot be {tried}", D::WHAT), error)
    }
}

/// The reason why a file has no usable document.
pub(super) enum Unreadable {
    /// The content is damaged, which does not pass.
    Damaged(String),
    /// The read failed, which may pass.
    Failed(StoreError),
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;
    use std::{fs, thread};

    use rockbot_core::SystemClock;
    use rockbot_core::store::MemoryEntry;
    use rockbot_core::testing::ManualClock;

    use super::*;

    #[tokio::test]
    async fn reading_aside_leaves_the_runtimes_thread_free() {
        let folder = tempfile::tempdir().unwrap();
        let store = DocumentStore::<MemoryEntry>::open(folder.path().join("memory"), Arc::new(SystemClock)).unwrap();
        let store = Arc::new(store);
        let me = Principal::default();
        let here = thread::current().id();
        let read = |entries: &Collection<MemoryEntry>| (entries.documents().count(), thread::current().id());
        assert_eq!(store.read(&me, read).await.unwrap(), (0, here));
        let (count, there) = store.read_aside(&me, read).await.unwrap();
        assert_eq!(count, 0);
        assert_ne!(there, here);
    }
    #[tokio::test]
    async fn a_read_of_a_large_folder_waits_for_no_rescan() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory");
        let clock = ManualClock::default();
        let me = Principal::default();
        let store = Arc::new(DocumentStore::<MemoryEntry>::open(path.clone(), Arc::new(clock.clone())).unwrap());
        let write = |n: usize| fs::write(path.join(format!("{n}.json")), r#"{"content": "likes tea"}"#).unwrap();
        let count = |entries: &Collection<MemoryEntry>| entries.documents().count();
        (0..201).for_each(write);
        assert_eq!(store.read(&me, count).await.unwrap(), 201);

        write(201);
        clock.advance(Duration::from_secs(60));
        let owned = store.owned.get_or_default(&me);
        let held = owned.clone();
        let release = mpsc::channel::<()>();
        let (locked, is_locked) = mpsc::channel();
        let holder = thread::spawn(move || {
            let _rescan = held.lock_rescan();
            locked.send(()).unwrap();
            release.1.recv().unwrap();
        });
        is_locked.recv().unwrap();
        assert_eq!(store.read(&me, count).await.unwrap(), 201);
        release.0.send(()).unwrap();
        holder.join().unwrap();
        while store.read(&me, count).await.unwrap() == 201 {
            tokio::task::yield_now().await;
        }
        assert_eq!(store.read(&me, count).await.unwrap(), 202);
    }
}
