//! [`FileWorkingMemory`]: one state for each principal, loaded on first use.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rockbot_core::files::{DataFolder, owner_of};
use rockbot_core::search::Ranked;
use rockbot_core::store::{StoreError, StorePath, WorkingEntry, WorkingMemory, WorkingMemoryError, WorkingNote};
use rockbot_core::{Principal, Timestamp};

use super::format::Change;
use super::state::WorkingState;
use super::{compaction, load};
use crate::WorkingMemoryOptions;
use crate::storage::blocking::{blocking, failed};
use crate::storage::folder::open_folder;
use crate::storage::principal_cache::PrincipalCache;

/// A [`WorkingMemory`] in a folder, which one process at a time can open.
///
/// A put resolves when the operating system has it: it survives `kill -9`, though not power loss,
/// and takes as long as writing its texts, however many entries there are. Time to live counts
/// while the process is down, too. The entries of at most 256 principals are cached.
#[derive(Debug)]
pub struct FileWorkingMemory(Arc<WorkingFolder>);

#[derive(Debug)]
struct WorkingFolder {
    folder: DataFolder,
    options: WorkingMemoryOptions,
    /// `None` until the state is loaded.
    states: PrincipalCache<Mutex<Option<WorkingState>>>,
    damaged: AtomicU64,
}

impl FileWorkingMemory {
    /// Opens the memory in `folder`, creating it if it is missing, with the default options.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is open already, here or in another process, or if it cannot be
    /// created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(folder, WorkingMemoryOptions::default())
    }

    /// Opens the memory in `folder` with `options`.
    ///
    /// # Errors
    ///
    /// Returns an error under the same conditions as [`FileWorkingMemory::open`].
    pub fn open_with(folder: impl Into<PathBuf>, options: WorkingMemoryOptions) -> Result<Self, StoreError> {
        let is_ours = |name: &str| name.ends_with(".json") || name.ends_with(".jsonl");
        Ok(Self(Arc::new(WorkingFolder {
            folder: open_folder(folder.into(), "working memory", is_ours)?,
            options,
            states: PrincipalCache::default(),
            damaged: AtomicU64::new(0),
        })))
    }

    /// Returns the number of quarantined files and of skipped entries and lines that could not be read.
    pub fn damaged(&self) -> u64 {
        self.0.damaged.load(Ordering::Relaxed)
    }

    /// Compacts all logs into the documents, for programs that read only documents. It costs two disk
    /// syncs for each group that changed.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let memory = self.0.clone();
        blocking(move || memory.compact_all()).await
    }

    /// Runs `work` on the state of `principal` at the current time, loading the state on a blocking
    /// thread first if needed.
    async fn with<R>(
        &self,
        principal: &Principal,
        work: impl FnOnce(&mut WorkingState, Timestamp) -> Result<R, WorkingMemoryError>,
    ) -> Result<R, WorkingMemoryError> {
        let slot = self.0.states.get_or_default(principal);
        let is_new = slot.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        if is_new {
            let memory = self.0.clone();
            let principal = principal.clone();
            let slot = slot.clone();
            blocking(move || memory.with_loaded(&principal, &slot, |_| ())).await?;
        }
        let now = self.0.options.clock.now();
        let work = |state: &mut WorkingState| {
            let now = state.entries.advance(now);
            work(state, now)
        };
        self.0.with_loaded(principal, &slot, work)?
    }

    /// Writes a change, and compacts the log if it is due.
    async fn write<R>(
        &self,
        principal: &Principal,
        plan: impl FnOnce(&WorkingState, Timestamp) -> Result<(Option<Change>, R), WorkingMemoryError>,
    ) -> Result<R, WorkingMemoryError> {
        let write = |state: &mut WorkingState, now| {
            let (change, result) = plan(state, now)?;
            if let Some(change) = change {
                state.write(&self.0.folder, &change)?;
            }
            Ok((result, state.begin_compaction()))
        };
        let (result, compacts) = self.with(principal, write).await?;
        if compacts {
            let memory = self.0.clone();
            let principal = principal.clone();
            let compacted = blocking(move || {
                let slot = memory.states.get_or_default(&principal);
                compaction::compact(&memory.folder, &principal, &slot)
            });
            if let Err(error) = compacted.await {
                tracing::warn!(%error, "the log of working memory cannot be compacted; it keeps growing");
            }
        }
        Ok(result)
    }
}

impl WorkingFolder {
    /// Runs `work` on the loaded state; loads it on this thread if it was evicted meanwhile.
    fn with_loaded<R>(
        &self,
        principal: &Principal,
        slot: &Mutex<Option<WorkingState>>,
        work: impl FnOnce(&mut WorkingState) -> R,
    ) -> Result<R, StoreError> {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let state = match slot.as_mut() {
            Some(state) => state,
            None => slot.insert(load::load(
                &self.folder,
                principal,
                self.options.clock.now(),
                &self.damaged,
            )?),
        };
        Ok(work(state))
    }

    /// Compacts the logs of all principals that have files.
    fn compact_all(&self) -> Result<(), StoreError> {
        let found = self.folder.list("");
        let found = found.map_err(|error| failed("working memory cannot be listed", error))?;
        let owners = found.iter().filter_map(|found| owner_of(&found.name));
        let owners: BTreeSet<_> = owners.map(|(principal, _)| principal).collect();
        let mut result = Ok(());
        for principal in owners {
            let slot = self.states.get_or_default(&principal);
            let now = self.options.clock.now();
            let begins = self.with_loaded(&principal, &slot, |state| {
                state.entries.advance(now);
                !std::mem::replace(&mut state.is_compacting, true)
            })?;
            if begins {
                result = result.and(compaction::compact(&self.folder, &principal, &slot));
            }
        }
        result
    }
}

#[async_trait]
impl WorkingMemory for FileWorkingMemory {
    async fn put(&self, principal: &Principal, notes: Vec<WorkingNote>) -> Result<(), WorkingMemoryError> {
        let limits = self.0.options.limits;
        let plan = |state: &WorkingState, now| {
            state.entries.check_room(&notes, limits)?;
            let entries = notes.into_iter().map(|note| Arc::new(note.stored_at(now)));
            Ok((Some(Change::Put(entries.collect())), ()))
        };
        self.write(principal, plan).await
    }

    async fn get(
        &self,
        principal: &Principal,
        key: &StorePath,
    ) -> Result<Option<Arc<WorkingEntry>>, WorkingMemoryError> {
        self.with(principal, |state, _| Ok(state.entries.get(key).cloned()))
            .await
    }

    async fn delete(&self, principal: &Principal, key: &StorePath) -> Result<bool, WorkingMemoryError> {
        let plan = |state: &WorkingState, _| {
            let change = state.entries.get(key).map(|_| Change::Deleted(key.clone()));
            let was_there = change.is_some();
            Ok((change, was_there))
        };
        self.write(principal, plan).await
    }

    async fn list(
        &self,
        principal: &Principal,
        prefix: Option<&StorePath>,
    ) -> Result<Vec<Arc<WorkingEntry>>, WorkingMemoryError> {
        self.with(principal, |state, _| Ok(state.entries.list(prefix).cloned().collect()))
            .await
    }

    /// Searches without an index: most entries expire within minutes without ever being searched, and
    /// indexing long results would delay the turn that puts them.
    async fn search(
        &self,
        principal: &Principal,
        prefix: Option<&StorePath>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Ranked<Arc<WorkingEntry>>>, WorkingMemoryError> {
        let entries = self.list(principal, prefix).await?;
        let query = query.to_owned();
        Ok(blocking(move || Ok(WorkingEntry::best(entries, &query, limit))).await?)
    }
}
