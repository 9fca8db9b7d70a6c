//! Long-term memory: facts that outlive their conversation.
//!
//! Archive, restore and edit are one compare-and-replace (`LongTermMemory::replace`): no store
//! has to know why an entry changes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::memory_entry::{MemoryEntry, Remembered, remembered};
use super::memory_query::MemoryQuery;
use super::per_principal::PerPrincipal;
use super::{StoreError, StoreErrorKind};
use crate::search::Ranked;
use crate::shared::share;
use crate::{MemoryId, Principal, Timestamp};

/// A store of facts that outlive their conversation.
///
/// Concurrent changes use optimistic concurrency: [`replace`](Self::replace) is a
/// compare-and-swap, and [`LongTermMemoryExt::update`] is the loop around it. Entries are
/// archived rather than deleted, so that a wrong decision can be undone.
#[async_trait]
pub trait LongTermMemory: fmt::Debug + Send + Sync + 'static {
    /// Returns the entry `id`, archived or not.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn get(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError>;

    /// Stores an entry, in place of one with the same id.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    async fn save(&self, principal: &Principal, entry: MemoryEntry) -> Result<(), StoreError>;

    /// Stores an entry unless a live entry [says the same](MemoryEntry::says_the_same_as): that
    /// entry is [reinforced](MemoryEntry::reinforce) instead, so no duplicate arises. If several
    /// concurrent calls have the same words, exactly one of them adds an entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    async fn remember(&self, principal: &Principal, entry: MemoryEntry) -> Result<Remembered, StoreError>;

    /// Replaces `before` by `after` if the stored entry still equals `before` (compare-and-swap).
    /// Returns `true` if it did; always `false` if their ids differ.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    async fn replace(
        &self,
        principal: &Principal,
        before: &MemoryEntry,
        after: MemoryEntry,
    ) -> Result<bool, StoreError>;

    /// Deletes an entry permanently and returns it. [`LongTermMemoryExt::archive`] can be undone.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    async fn delete(&self, principal: &Principal, id: &MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError>;

    /// Deletes permanently, for all principals, the entries archived before `before`, and returns
    /// their number. Data that cannot be read is kept, and so are entries that a person edited since,
    /// as far as the memory can tell.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written; entries deleted before the error stay deleted.
    async fn purge(&self, before: Timestamp) -> Result<u64, StoreError>;

    /// Returns all entries, including archived entries, in the order of their ids.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn list(&self, principal: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError>;

    /// Returns the entries that match `query`, best first.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn search(
        &self,
        principal: &Principal,
        query: &MemoryQuery,
    ) -> Result<Vec<Ranked<Arc<MemoryEntry>>>, StoreError> {
        Ok(query.rank(self.list(principal).await?))
    }

    /// Returns at most `limit` live entries that mean what `text` says, in whatever words, the
    /// nearest first. A memory that compares words alone returns none, which is the default.
    ///
    /// Nearly the same meaning is not the same fact: `born in 1980` is near `born in 1981`. So this
    /// is for a notice, and no reason to leave an entry out.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn similar(
        &self,
        principal: &Principal,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        let _compares_words_alone = (principal, text, limit);
        Ok(Vec::new())
    }
}

share! {
    LongTermMemory {
        async get<'a, 'b>(principal: &'a Principal, id: &'b MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError>;
        async save<'a>(principal: &'a Principal, entry: MemoryEntry) -> Result<(), StoreError>;
        async remember<'a>(principal: &'a Principal, entry: MemoryEntry) -> Result<Remembered, StoreError>;
        async replace<'a, 'b>(principal: &'a Principal, before: &'b MemoryEntry, after: MemoryEntry) -> Result<bool, StoreError>;
        async delete<'a, 'b>(principal: &'a Principal, id: &'b MemoryId) -> Result<Option<Arc<MemoryEntry>>, StoreError>;
        async purge(before: Timestamp) -> Result<u64, StoreError>;
        async list<'a>(principal: &'a Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError>;
        async search<'a, 'b>(principal: &'a Principal, query: &'b MemoryQuery) -> Result<Vec<Ranked<Arc<MemoryEntry>>>, StoreError>;
        async similar<'a, 'b>(principal: &'a Principal, text: &'b str, limit: usize) -> Result<Vec<Arc<MemoryEntry>>, StoreError>;
    }
}

/// Operations that every [`LongTermMemory`] has, built on its compare-and-swap.
#[async_trait]
pub trait LongTermMemoryExt: LongTermMemory {
    /// Updates an entry by optimistic concurrency, and returns the stored result; `None` if there is
    /// no such entry.
    ///
    /// Reads the entry, applies `change` to a copy, and stores the copy with
    /// [`replace`](LongTermMemory::replace) if no other writer changed the entry in between;
    /// otherwise it starts again with the entry as it is then. `change` may therefore run several
    /// times and must depend on nothing but the entry that it is given. An error of `change` ends the
    /// update, and nothing is stored.
    ///
    /// # Errors
    ///
    /// Returns the error of `change`, or an error of the store if it cannot be read or written. The
    /// error has the kind [`StoreErrorKind::Conflict`] if other writers changed the entry during
    /// all of 100 attempts.
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
    /// Returns an error if the memory cannot be read or written, or if other writers changed the
    /// entry each time.
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

    /// Archives an entry: searches no longer return it, it can still be read, and
    /// [`LongTermMemoryExt::restore`] undoes it. Returns the stored result; `None` if there is no
    /// such entry.
    ///
    /// # Errors
    ///
    /// Returns an error as [`LongTermMemoryExt::update`] does.
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

    /// Restores an entry: undoes [`LongTermMemoryExt::archive`], and a supersession by another
    /// entry.
    ///
    /// # Errors
    ///
    /// Returns an error as [`LongTermMemoryExt::update`] does.
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

/// A [`LongTermMemory`] in memory, lost when the process ends.
#[derive(Debug, Default)]
pub struct InMemoryLongTermMemory {
    entries: PerPrincipal<BTreeMap<MemoryId, Arc<MemoryEntry>>>,
}

impl InMemoryLongTermMemory {
    /// Creates an empty memory.
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
