//! Working memory: a scratch space for texts with a TTL, shared by all work of an agent and
//! separated by paths.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::StorePath;
use super::per_principal::PerPrincipal;
use super::working_entries::{WorkingEntries, WorkingLimits};
use super::working_note::{WorkingEntry, WorkingMemoryError, WorkingNote};
use crate::search::Ranked;
use crate::shared::share;
use crate::{Clock, Principal, SystemClock, Timestamp};

/// A store of texts with a TTL, by path.
///
/// The first two segments of a key are its namespace, such as `session/abc`. A namespace has
/// quotas of entries and of bytes ([`WorkingLimits`]); a write beyond them is rejected, never
/// dropped silently.
#[async_trait]
pub trait WorkingMemory: fmt::Debug + Send + Sync + 'static {
    /// Stores all of `notes` or none of them, each in place of the entry under its key.
    ///
    /// # Errors
    ///
    /// Returns [`WorkingMemoryError::Full`] if a namespace would hold too many entries,
    /// [`WorkingMemoryError::TooLarge`] if it would hold too many bytes, and an error if the memory
    /// cannot be written.
    async fn put(&self, principal: &Principal, notes: Vec<WorkingNote>) -> Result<(), WorkingMemoryError>;

    /// Returns the entry under `key`, unless it has expired.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn get(
        &self,
        principal: &Principal,
        key: &StorePath,
    ) -> Result<Option<Arc<WorkingEntry>>, WorkingMemoryError>;

    /// Removes the entry under `key`. Returns `true` if it existed.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    async fn delete(&self, principal: &Principal, key: &StorePath) -> Result<bool, WorkingMemoryError>;

    /// Returns the entries under `prefix` and below it, or all of them, in the order of their keys.
    /// `session/a` is not below `session/ab`, nor the reverse.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn list(
        &self,
        principal: &Principal,
        prefix: Option<&StorePath>,
    ) -> Result<Vec<Arc<WorkingEntry>>, WorkingMemoryError>;

    /// Returns the `limit` entries under `prefix` that match `query` best, best first. Keys, texts,
    /// tags and categories are searched; entries with none of the words are skipped.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be read.
    async fn search(
        &self,
        principal: &Principal,
        prefix: Option<&StorePath>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Ranked<Arc<WorkingEntry>>>, WorkingMemoryError> {
        Ok(WorkingEntry::best(self.list(principal, prefix).await?, query, limit))
    }
}

share! {
    WorkingMemory {
        async put<'a>(principal: &'a Principal, notes: Vec<WorkingNote>) -> Result<(), WorkingMemoryError>;
        async get<'a, 'b>(principal: &'a Principal, key: &'b StorePath) -> Result<Option<Arc<WorkingEntry>>, WorkingMemoryError>;
        async delete<'a, 'b>(principal: &'a Principal, key: &'b StorePath) -> Result<bool, WorkingMemoryError>;
        async list<'a, 'b>(principal: &'a Principal, prefix: Option<&'b StorePath>) -> Result<Vec<Arc<WorkingEntry>>, WorkingMemoryError>;
        async search<'a, 'b, 'c>(
            principal: &'a Principal,
            prefix: Option<&'b StorePath>,
            query: &'c str,
            limit: usize,
        ) -> Result<Vec<Ranked<Arc<WorkingEntry>>>, WorkingMemoryError>;
    }
}

/// A [`WorkingMemory`] in memory, lost when the process ends.
#[derive(Debug)]
pub struct InMemoryWorkingMemory {
    entries: PerPrincipal<WorkingEntries>,
    limits: WorkingLimits,
    clock: Arc<dyn Clock>,
}

impl Default for InMemoryWorkingMemory {
    fn default() -> Self {
        Self {
            entries: PerPrincipal::default(),
            limits: WorkingLimits::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl InMemoryWorkingMemory {
    /// Creates a memory that holds 1 000 entries and 64 MiB of texts in each namespace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of entries of each namespace. Default 1 000.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limits.entries = limit;
        self
    }

    /// Sets the maximum size of the texts of each namespace, in bytes. Default 64 MiB.
    #[must_use]
    pub fn with_byte_limit(mut self, limit: usize) -> Self {
        self.limits.bytes = limit;
        self
    }

    /// Sets the clock that entries expire by. Default [`SystemClock`].
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Runs `work` on the entries that have not expired.
    fn with<R>(&self, principal: &Principal, work: impl FnOnce(&mut WorkingEntries, Timestamp) -> R) -> R {
        self.entries.write(principal, |entries| {
            let now = entries.advance(self.clock.now());
            work(entries, now)
        })
    }
}

#[async_trait]
impl WorkingMemory for InMemoryWorkingMemory {
    async fn put(&self, principal: &Principal, notes: Vec<WorkingNote>) -> Result<(), WorkingMemoryError> {
        self.with(principal, |entries, now| {
            entries.check_room(&notes, self.limits)?;
            for note in notes {
                entries.insert(Arc::new(note.stored_at(now)));
            }
            Ok(())
        })
    }

    async fn get(
        &self,
        principal: &Principal,
        key: &StorePath,
    ) -> Result<Option<Arc<WorkingEntry>>, WorkingMemoryError> {
        Ok(self.with(principal, |entries, _| entries.get(key).cloned()))
    }

    async fn delete(&self, principal: &Principal, key: &StorePath) -> Result<bool, WorkingMemoryError> {
        Ok(self.with(principal, |entries, _| entries.remove(key).is_some()))
    }

    async fn list(
        &self,
        principal: &Principal,
        prefix: Option<&StorePath>,
    ) -> Result<Vec<Arc<WorkingEntry>>, WorkingMemoryError> {
        Ok(self.with(principal, |entries, _| entries.list(prefix).cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Provenance;
    use crate::testing::conformance;

    #[tokio::test]
    async fn keeps_the_promises_of_a_working_memory() {
        let make = async |clock, limit| InMemoryWorkingMemory::new().with_clock(clock).with_limit(limit);
        conformance::working_memory(make).await;
    }

    #[tokio::test]
    async fn what_is_too_long_for_its_namespace_is_refused() {
        let me = Principal::default();
        let memory = InMemoryWorkingMemory::new().with_byte_limit(10);
        let put = async |notes: &[(&str, usize)]| {
            let note = |(key, length): &(&str, usize)| {
                WorkingNote::new(StorePath::new(key).unwrap(), "x".repeat(*length), Provenance::TOOL)
            };
            memory.put(&me, notes.iter().map(note).collect()).await
        };
        put(&[("session/a/1", 4), ("session/a/2", 6), ("session/b/1", 9)])
            .await
            .unwrap();
        put(&[("session/a/1", 1), ("session/a/3", 3)]).await.unwrap();
        let refused = put(&[("session/b/2", 1), ("session/a/4", 1)]).await;
        assert!(
            matches!(refused, Err(WorkingMemoryError::TooLarge { namespace, limit: 10 }) if namespace == "session/a")
        );
        assert_eq!(
            memory.get(&me, &StorePath::new("session/b/2").unwrap()).await.unwrap(),
            None
        );
    }
}
