//! Stores of dated entries: the trait that feedback and uses of skills share, and its in-memory
//! version.

use std::fmt;

use async_trait::async_trait;

use super::StoreError;
use super::per_principal::PerPrincipal;
use crate::shared::share;
use crate::{Principal, SessionId, Timestamp};

/// An entry that belongs to a session and has a time.
pub trait TimelineEntry: Clone + fmt::Debug + Send + Sync + 'static {
    /// Returns the session that the entry belongs to.
    fn session(&self) -> &SessionId;

    /// Returns the time of the entry. Entries are ordered and purged by it.
    fn timestamp(&self) -> Timestamp;
}

/// An append-only store of dated entries, ordered by time within each principal.
///
/// [`FeedbackStore`](super::FeedbackStore) and [`SkillUsageStore`](super::SkillUsageStore) are
/// names for this trait with their entry: every `TimelineStore<FeedbackEntry>` is a feedback
/// store. One implementation can be generic over the entry and serve both, as
/// [`InMemoryTimeline`] does.
#[async_trait]
pub trait TimelineStore<T: TimelineEntry>: fmt::Debug + Send + Sync + 'static {
    /// Appends an entry. An entry older than the newest one takes its place in the order of time.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written.
    async fn append(&self, principal: &Principal, entry: T) -> Result<(), StoreError>;

    /// Returns the newest `limit` entries of all sessions that are not older than `since`, oldest
    /// first.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    async fn query_recent(&self, principal: &Principal, since: Timestamp, limit: usize) -> Result<Vec<T>, StoreError>;

    /// Removes, for all principals, entries older than `before` and entries beyond the newest `max`
    /// of their principal, and returns the number of removed entries.
    ///
    /// Data that cannot be read is kept, and so are entries that a person edited by hand, as far as
    /// the store can tell.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written; entries removed before the error stay removed.
    async fn purge(&self, before: Timestamp, max: usize) -> Result<u64, StoreError>;
}

share! {
    TimelineStore<T: TimelineEntry> {
        async append<'a>(principal: &'a Principal, entry: T) -> Result<(), StoreError>;
        async query_recent<'a>(principal: &'a Principal, since: Timestamp, limit: usize) -> Result<Vec<T>, StoreError>;
        async purge(before: Timestamp, max: usize) -> Result<u64, StoreError>;
    }
}

/// Maximum number of entries of a principal that are kept in memory.
const MAX_ENTRIES: usize = 10_000;

/// A [`TimelineStore`] in memory, lost when the process ends.
///
/// Keeps the newest 10 000 entries of each principal and drops the oldest beyond that.
#[derive(Debug)]
pub struct InMemoryTimeline<T> {
    entries: PerPrincipal<Vec<T>>,
}

impl<T> Default for InMemoryTimeline<T> {
    fn default() -> Self {
        Self {
            entries: PerPrincipal::default(),
        }
    }
}

impl<T> InMemoryTimeline<T> {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl<T: TimelineEntry> TimelineStore<T> for InMemoryTimeline<T> {
    async fn append(&self, principal: &Principal, entry: T) -> Result<(), StoreError> {
        self.entries.write(principal, |entries| {
            // Behind the entries of the same time, so that entries of one moment keep the order of their
            // appends.
            let at = entries.partition_point(|known| known.timestamp() <= entry.timestamp());
            entries.insert(at, entry);
            entries.drain(..entries.len().saturating_sub(MAX_ENTRIES));
        });
        Ok(())
    }

    async fn query_recent(&self, principal: &Principal, since: Timestamp, limit: usize) -> Result<Vec<T>, StoreError> {
        Ok(self.entries.read(principal, |entries| {
            let from = entries.partition_point(|entry| entry.timestamp() < since);
            entries[from.max(entries.len().saturating_sub(limit))..].to_vec()
        }))
    }

    async fn purge(&self, before: Timestamp, max: usize) -> Result<u64, StoreError> {
        let purged = self.entries.write_all(|entries| {
            let since = match max {
                0 => Timestamp::from_millis(u64::MAX),
                max => {
                    let oldest = entries.get(entries.len().saturating_sub(max));
                    oldest.map_or(before, |oldest| before.max(oldest.timestamp()))
                }
            };
            let purged = entries.partition_point(|entry| entry.timestamp() < since);
            entries.drain(..purged);
            purged as u64
        });
        Ok(purged.into_iter().sum())
    }
}
