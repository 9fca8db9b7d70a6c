//! What in-memory stores of dated entries have in common: each principal's entries, in the order of their times.

use super::per_principal::PerPrincipal;
use crate::{Principal, Timestamp};

/// An entry that knows its time.
pub(super) trait Dated: Clone {
    /// When it happened.
    fn timestamp(&self) -> Timestamp;
}

/// How many entries of a principal are kept.
const MOST: usize = 10_000;

#[derive(Debug)]
pub(super) struct Timeline<T>(PerPrincipal<Vec<T>>);

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Self(PerPrincipal::default())
    }
}

impl<T: Dated> Timeline<T> {
    /// Adds an entry behind those of its time. Beyond 10 000 the oldest one goes.
    pub(super) fn append(&self, principal: &Principal, entry: T) {
        self.0.write(principal, |entries| {
            let at = entries.partition_point(|known| known.timestamp() <= entry.timestamp());
            entries.insert(at, entry);
            entries.drain(..entries.len().saturating_sub(MOST));
        });
    }

    /// Removes, of all principals, what is older than `before` or than the newest `most` entries of its principal.
    pub(super) fn purge(&self, before: Timestamp, most: usize) -> u64 {
        let purged = self.0.write_all(|entries| {
            let since = match most {
                0 => Timestamp::from_millis(u64::MAX),
                most => {
                    let oldest = entries.get(entries.len().saturating_sub(most));
                    oldest.map_or(before, |oldest| before.max(oldest.timestamp()))
                }
            };
            let gone = entries.partition_point(|entry| entry.timestamp() < since);
            entries.drain(..gone);
            gone as u64
        });
        purged.into_iter().sum()
    }

    /// The newest `limit` entries since `since`, oldest first.
    pub(super) fn recent(&self, principal: &Principal, since: Timestamp, limit: usize) -> Vec<T> {
        self.0.read(principal, |entries| {
            let from = entries.partition_point(|entry| entry.timestamp() < since);
            entries[from.max(entries.len().saturating_sub(limit))..].to_vec()
        })
    }
}
