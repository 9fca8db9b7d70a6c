//! Feedback in files: [`FileFeedbackStore`].
//!
//! `{session}.jsonl` has an entry in each line; sessions of the principal `local` lie in the folder itself, those of
//! others in `@{principal}/`. Lines that cannot be read are skipped and stay. What is too old goes when somebody
//! [purges](rockbot_core::store::TimelineStore::purge), as a [`Memory`](crate::Memory) does.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{FeedbackEntry, StoreError, TimelineStore};
use rockbot_core::{Principal, Timestamp};

use crate::storage::session_lines::{Line, SessionLines};

/// A [`FeedbackStore`](rockbot_core::store::FeedbackStore) in a folder, which one process at a time can open.
///
/// An append resolves when the operating system has it: it survives `kill -9`, and takes microseconds. A line has
/// less than 1 MiB.
#[derive(Debug)]
pub struct FileFeedbackStore {
    lines: Arc<SessionLines<FeedbackEntry>>,
}

impl Line for FeedbackEntry {
    const WHAT: &'static str = "feedback";
}

impl FileFeedbackStore {
    /// Opens the feedback in `folder`, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// Fails when the folder is open already, here or in another process, and when it cannot be made.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Ok(Self {
            lines: Arc::new(SessionLines::open(folder.into())?),
        })
    }

    /// How many lines queries skipped, each time they met them, and how many files were set aside, since they could not
    /// be read.
    pub fn damaged(&self) -> u64 {
        self.lines.damaged()
    }
}

#[async_trait]
impl TimelineStore<FeedbackEntry> for FileFeedbackStore {
    async fn append(&self, principal: &Principal, entry: FeedbackEntry) -> Result<(), StoreError> {
        self.lines.append(principal, &entry)
    }

    async fn query_recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<FeedbackEntry>, StoreError> {
        self.lines.recent(principal, since, limit).await
    }

    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        self.lines.purge(before, most).await
    }
}
