//! Media in files: one file for each image or file, named by its digest.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use rockbot_core::content::{MAX_MEDIA_BYTES, StoredMedia};
use rockbot_core::files::{self, DataFolder, FileError};
use rockbot_core::store::{MediaStore, StoreError, StoreErrorKind};
use rockbot_core::{Digest, Principal, Timestamp};

/// Minimum age of a file whose bytes are written again when they are put again, so that a purge
/// keeps them.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// A [`MediaStore`] in a folder, which one process holds at a time. The folder is created and
/// locked by the first use.
///
/// A file is written once and synced; its name is the digest of its bytes, so a damaged file is
/// recognized and counts as missing. Media of other principals are in `@{principal}/`. The age of
/// a medium is the age of its file.
///
/// ```
/// use rockbot_core::Principal;
/// use rockbot_core::store::MediaStore;
/// use rockbot_store::file::FileMediaStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let (store, me) = (FileMediaStore::new(folder.path()), Principal::default());
/// let stored = store.put(&me, "a picture".into()).await?;
/// assert_eq!(store.get(&me, &stored.digest).await?.as_deref(), Some(&b"a picture"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FileMediaStore(Arc<LazyFolder>);

/// The folder, opened by the first use: most hosts never see an image.
#[derive(Debug)]
struct LazyFolder {
    path: PathBuf,
    opened: Mutex<Option<Arc<DataFolder>>>,
}

impl FileMediaStore {
    /// Creates a store in the folder at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(LazyFolder {
            path: path.into(),
            opened: Mutex::default(),
        }))
    }

    /// Runs `work` on a thread that may block: a medium has up to 20 MiB.
    async fn blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce(&DataFolder) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let folder = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&*folder.open()?)).await;
        done.unwrap_or_else(|error| {
            let context = "media cannot be read or written while the runtime ends";
            Err(StoreError::new(StoreErrorKind::Closed, context).with_cause(error))
        })
    }
}

impl LazyFolder {
    fn open(&self) -> Result<Arc<DataFolder>, StoreError> {
        // No code that can panic runs under the lock.
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*opened {
            return Ok(folder.clone());
        }
        let folder = DataFolder::open(&self.path).map_err(failed("the folder of media cannot be opened"))?;
        folder.remove_drafts(|_| true, is_medium);
        Ok(opened.insert(Arc::new(folder)).clone())
    }
}

#[async_trait]
impl MediaStore for FileMediaStore {
    async fn put(&self, principal: &Principal, bytes: Bytes) -> Result<StoredMedia, StoreError> {
        let principal = principal.clone();
        self.blocking(move |folder| {
            let stored = StoredMedia::of(&bytes);
            let name = name(&principal, &stored.digest)?;
            let found = folder.find(&name).map_err(failed("a medium cannot be looked up"))?;
            let is_there = found.is_some_and(|file| file.len == stored.size && is_fresh(file.modified));
            let written = match is_there {
                // The name may be there because an earlier sync of it failed.
                true => folder.sync(&name),
                false => folder.replace(&name, &bytes),
            };
            written.map_err(failed("a medium cannot be written"))?;
            Ok(stored)
        })
        .await
    }

    async fn get(&self, principal: &Principal, digest: &Digest) -> Result<Option<Bytes>, StoreError> {
        let principal = principal.clone();
        let digest = *digest;
        self.blocking(move |folder| {
            let name = name(&principal, &digest)?;
            let bytes = folder.read(&name, MAX_MEDIA_BYTES as u64);
            let bytes = bytes.map_err(failed("a medium cannot be read"))?;
            let intact = bytes.filter(|bytes| StoredMedia::of(bytes).digest == digest);
            Ok(intact.map(Bytes::from))
        })
        .await
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.blocking(move |folder| {
            let failed = failed("old media cannot be removed");
            let mut removed = 0;
            for file in folder.list("").map_err(&failed)? {
                let is_old = file
                    .modified
                    .is_some_and(|modified| millis(modified) < before.as_millis());
                if is_old && is_medium(&file.name) {
                    removed += u64::from(folder.remove(&file.name).map_err(&failed)?);
                }
            }
            Ok(removed)
        })
        .await
    }
}

/// Returns the name of the file with these bytes.
fn name(principal: &Principal, digest: &Digest) -> Result<String, StoreError> {
    let name = files::name_of(principal, &digest.to_string());
    name.map_err(|error| StoreError::caused_by("the principal has no folder", error))
}

/// Reports whether a file belongs to this store: an operator may keep other files beside its own.
fn is_medium(name: &str) -> bool {
    let digest = name.rsplit('/').next().unwrap_or(name);
    digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_fresh(modified: Option<SystemTime>) -> bool {
    modified
        .and_then(|modified| modified.elapsed().ok())
        .is_some_and(|age| age < FRESH)
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn failed(context: &'static str) -> impl Fn(FileError) -> StoreError {
    move |error| StoreError::caused_by(context, error)
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::conformance;

    use super::*;

    #[tokio::test]
    async fn keeps_the_promises_of_a_media_store() {
        let folder = tempfile::tempdir().unwrap();
        let next = std::cell::Cell::new(0);
        conformance::media_store(async || {
            next.set(next.get() + 1);
            FileMediaStore::new(folder.path().join(next.get().to_string()))
        })
        .await;
    }

    #[tokio::test]
    async fn a_damaged_medium_counts_as_missing_until_it_is_put_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileMediaStore::new(folder.path());
        let me = Principal::default();
        let stored = store.put(&me, "picture".into()).await.unwrap();
        let path = folder.path().join(stored.digest.to_string());
        std::fs::write(&path, "pict").unwrap();
        assert_eq!(store.get(&me, &stored.digest).await.unwrap(), None);
        store.put(&me, "picture".into()).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"picture");
    }

    #[tokio::test]
    async fn a_purge_leaves_files_of_others_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileMediaStore::new(folder.path());
        std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        assert_eq!(store.purge(Timestamp::from_millis(u64::MAX)).await.unwrap(), 0);
        assert!(folder.path().join("notes.txt").exists());
    }
}
