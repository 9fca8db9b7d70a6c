//! Long-term memory in files: [`FileLongTermMemory`].
//!
//! A memory is one JSON document, `{category}/{id}.json`, or `{id}.json` when it has no category;
//! memories of the principal `local` are in the folder itself, memories of other principals in
//! `@{principal}/`.
//!
//! People may add, change and remove these files. The id is the name of the file; `category`,
//! when it is missing, is the folder; `createdAt`, when it is missing, is the modification time:
//! `{"content": "likes tea"}` is a valid file. A memory stays in its file until its category
//! changes.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::search::Ranked;
use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery, Remembered, StoreError, remembered};
use rockbot_core::{MemoryId, Principal, Timestamp};

use crate::FileOptions;
use crate::storage::documents::{Collection, DocumentStore};

/// Length of a query, in bytes, above which its search runs on a blocking thread.
const LONG_QUERY: usize = 4 * 1024;

/// A [`LongTermMemory`] in a folder, which one process at a time can open.
///
/// A write resolves when it is synced to disk. Memories of at most 256 principals are cached with
/// a word index; the files are the source of truth. An external edit is seen by the first search
/// 2 seconds later, or after 20 times the duration of a rescan, whichever is longer; a folder of
/// more than 200 files is rescanned in the background, so that the search after next may be the
/// first to see it. A memory has at most 8 MiB as JSON.
///
/// ```
/// # use rockbot_core::chat::Provenance;
/// # use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery};
/// # use rockbot_core::{Principal, Timestamp};
/// use rockbot_store::file::FileLongTermMemory;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::BoxError> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("memory");
/// let (me, memory) = (Principal::default(), FileLongTermMemory::open(path)?);
/// memory.remember(&me, MemoryEntry::new("m1", "likes tea", Timestamp::default(), Provenance::USER)).await?;
/// let found = memory.search(&me, &MemoryQuery::new("tea")).await?;
/// assert_eq!(found[0].item.content, "likes tea");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileLongTermMemory {
    documents: Arc<DocumentStore<MemoryEntry>>,
}

impl FileLongTermMemory {
    /// Opens the memory in `folder`, creating it if it is missing, with the default options.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is open already, here or in another process, or if it cannot be
    /// created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(folder, FileOptions::default())
    }

    /// Opens the memory in `folder` with `options`.
    ///
    /// # Errors
    ///
    /// Returns an error under the same conditions as [`FileLongTermMemory::open`].
    pub fn open_with(folder: impl Into<PathBuf>, options: FileOptions) -> Result<Self, StoreError> {
        Ok(Self {
            documents: Arc::new(DocumentStore::open(folder.into(), options.clock)?),
        })
    }

    /// Returns the number of files that were quarantined because they could not be read.
    pub fn damaged(&self) -> u64 {
        self.documents.damaged()
    }
}

#[async_trait]
impl LongTermMemory for FileLongTermMemory {
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        self.documents.read(principal, |entries| entries.get(id).cloned()).await
    }

    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError> {
        let entry = Arc::new(entry);
        self.documents
            .write(principal, move |_| (Some(entry.clone()), ()))
            .await
    }

    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError> {
        let plan = move |entries: &Collection<MemoryEntry>| {
            let remembered = remembered(entries.documents(), entry.clone());
            (Some(remembered.entry().clone()), remembered)
        };
        self.documents.write(principal, plan).await
    }

    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError> {
        let before = before.clone();
        let after = Arc::new(after);
        let plan = move |entries: &Collection<MemoryEntry>| {
            let is_there = entries.get(&after.id).is_some_and(|entry| **entry == before);
            (is_there.then(|| after.clone()), is_there)
        };
        self.documents.write(principal, plan).await
    }

    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        self.documents.delete(principal, id.clone()).await
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.documents.purge(before, MemoryEntry::credibly_archived_at).await
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        let list = |entries: &Collection<MemoryEntry>| entries.documents().cloned().collect();
        self.documents.read(principal, list).await
    }

    async fn search(
        &self,
        principal: &Principal,
        query: &MemoryQuery,
    ) -> Result<Vec<Ranked<Arc<MemoryEntry>>>, StoreError> {
        let (query, is_long) = (query.clone(), query.text.len() > LONG_QUERY);
        let search = move |entries: &Collection<MemoryEntry>| {
            if query.text.trim().is_empty() || query.with_archived {
                // The word index has live memories only, and nothing to rank without words.
                query.rank(entries.documents().cloned())
            } else {
                entries.search(&query.text, query.limit, |entry| query.admits(entry))
            }
        };
        if is_long {
            self.documents.read_aside(principal, search).await
        } else {
            self.documents.read(principal, search).await
        }
    }
}
