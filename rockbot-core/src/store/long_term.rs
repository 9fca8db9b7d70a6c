//! Long-term memory: facts that outlive their conversation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::memory_entry::{MemoryEntry, Remembered, remembered};
use super::memory_query::MemoryQuery;
use super::per_principal::PerPrincipal;
use super::{StoreError, StoreErrorKind};
use crate::search::Ranked;
use crate::{MemoryId, Principal, Timestamp};

/// Remembers facts.
#[async_trait]
pub trait LongTermMemory: fmt::Debug + Send + Sync + 'static {
    /// The entry `id`, archived or not.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read.
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError>;

    /// Keeps an entry, in place of one with the same id.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError>;

    /// Keeps an entry, unless a live one [says the same](MemoryEntry::says_the_same_as): then that one is
    /// [reinforced](MemoryEntry::reinforce), and there is no second copy. Of several calls at once with the same words
    /// one adds.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError>;

    /// Puts `after` in the place of `before`, if `before` still stands there as it is. Returns whether it did; never
    /// when their ids differ.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError>;

    /// Removes an entry for good and returns it. [`LongTermMemoryExt::archive`] can be undone.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written.
    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError>;

    /// Removes for good, for all principals, the entries that were archived before `before`, and returns how many. What
    /// cannot be read stays, and so does what a person changed since, as far as the memory can tell.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be written; what went before is gone.
    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError>;

    /// All entries, archived ones too, in the order of their ids.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read.
    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError>;

    /// The entries that `query` asks for, the best first.
    ///
    /// # Errors
    ///
    /// Fails when the memory cannot be read.
    async fn search(
        &self,
        principal: &Principal,
        query: &MemoryQuery,
    ) -> Result<Vec<Ranked<Arc<MemoryEntry>>>, StoreError> {
        Ok(query.rank(self.list(principal).await?))
    }
}

/// What follows from the operations of a [`LongTermMemory`].
#[async_trait]
pub trait LongTermMemoryExt: LongTermMemory {
    /// Updates an entry by optimistic concurrency, and returns the stored result; `None` if there is no such entry.
    ///
    /// Reads the entry, applies `change` to a copy, and stores the copy with [`replace`](LongTermMemory::replace) if no
    /// other writer changed the entry in between; otherwise it starts again with the entry as it is then. `change` may
    /// therefore run several times and must depend on nothing but the entry that it is given. An error of `change` ends
    /// the update, and nothing is stored.
    ///
    /// # Errors
    ///
    /// Returns the error of `change`; an error of the store, if it cannot be read or written; and one of kind
    /// [`StoreErrorKind::Conflict`] if other writers changed the entry during all of 100 attempts.
    async fn try_update<E: From<StoreError> + Send>(
        &self,
        principal: &Principal,
        id: &MemoryId,
        change: impl for<'e> Fn(&'e mut MemoryEntry) -> Result<(), E> + Send + Sync,
    ) -> Result<Option<Arc<MemoryEntry>>, E> {
        for _ in 0..MAX_ATTEMPTS {
            let Some(before) = self.get(principal, id).await? else {
                return Ok(None);
            };
            let mut after = (*before).clone();
            change(&mut after)?;
            if self.replace(principal, &before, after.clone()).await? {
                return Ok(Some(Arc::new(after)));
            }
        }
        let context =
            format!("the memory `{id}` cannot be changed, since other writers changed it each time; try again");
        Err(StoreError::new(StoreErrorKind::Conflict, context).into())
    }

    /// Updates an entry as [`try_update`](Self::try_update) does, with a change that cannot fail.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read or written, or if other writers changed the entry each time.
    async fn update(
        &self,
        principal: &Principal,
        id: &MemoryId,
        change: impl for<'e> Fn(&'e mut MemoryEntry) + Send + Sync,
    ) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        let change = |entry: &mut MemoryEntry| {
            change(entry);
            Ok(())
        };
        self.try_update::<StoreError>(principal, id, change).await
    }

    /// Hides an entry from searches, and says why. It can still be read, and comes back with
    /// [`LongTermMemoryExt::restore`]. Returns it as it is then; `None` when there is none.
    ///
    /// # Errors
    ///
    /// Fails as [`LongTermMemoryExt::update`] does.
    async fn archive(
        &self,
        principal: &Principal,
        id: &MemoryId,
        reason: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        let archive = |entry: &mut MemoryEntry| {
            entry.archived_at = Some(now);
            entry.archive_reason = Some(reason.to_owned());
        };
        self.update(principal, id, archive).await
    }

    /// Undoes [`LongTermMemoryExt::archive`], and that another entry took the place of this one.
    ///
    /// # Errors
    ///
    /// Fails as [`LongTermMemoryExt::update`] does.
    async fn restore(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        let restore = |entry: &mut MemoryEntry| {
            (entry.archived_at, entry.archive_reason, entry.superseded_by) = (None, None, None);
        };
        self.update(principal, id, restore).await
    }
}

impl<M: LongTermMemory + ?Sized> LongTermMemoryExt for M {}

/// Maximum number of attempts of an update while other writers change the same entry.
const MAX_ATTEMPTS: usize = 100;

/// Long-term memory of a process: gone when it ends.
#[derive(Debug, Default)]
pub struct InMemoryLongTermMemory {
    entries: PerPrincipal<BTreeMap<MemoryId, Arc<MemoryEntry>>>,
}

impl InMemoryLongTermMemory {
    /// A memory without entries.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl LongTermMemory for InMemoryLongTermMemory {
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        Ok(self.entries.read(principal, |entries| entries.get(id).cloned()))
    }

    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError> {
        self.entries
            .write(principal, |entries| entries.insert(entry.id.clone(), Arc::new(entry)));
        Ok(())
    }

    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError> {
        Ok(self.entries.write(principal, |entries| {
            let remembered = remembered(entries.values(), entry);
            let entry = remembered.entry();
            entries.insert(entry.id.clone(), entry.clone());
            remembered
        }))
    }

    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError> {
        Ok(self
            .entries
            .write(principal, |entries| match entries.get_mut(&after.id) {
                Some(entry) if **entry == *before => {
                    *entry = Arc::new(after);
                    true
                }
                _ => false,
            }))
    }

    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError> {
        Ok(self.entries.write(principal, |entries| entries.remove(id)))
    }

    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError> {
        let purged = self.entries.write_all(|entries| {
            let len = entries.len();
            entries.retain(|_, entry| !entry.was_archived_before(before));
            (len - entries.len()) as u64
        });
        Ok(purged.into_iter().sum())
    }

    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        Ok(self
            .entries
            .read(principal, |entries| entries.values().cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_long_term_memory() {
        conformance::long_term_memory(async || InMemoryLongTermMemory::new()).await;
    }
}
