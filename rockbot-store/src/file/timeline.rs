//! The generic store of dated entries in files: [`FileTimeline`].

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{StoreError, TimelineStore};
use rockbot_core::{Principal, Timestamp};

use crate::storage::timeline::{StoredEntry, Timeline};

/// A [`TimelineStore`] in a folder, which one process at a time can open; used as
/// [`FileFeedbackStore`](super::FileFeedbackStore) and
/// [`FileSkillUsageStore`](super::FileSkillUsageStore).
///
/// `{session}.jsonl` has one entry in each line. An append resolves when the operating system has
/// the line: it survives `kill -9`, though not power loss, and takes microseconds. A line has
/// less than 1 MiB. Lines that cannot be read are skipped and stay in their file.
#[derive(Debug)]
pub struct FileTimeline<E> {
    timeline: Arc<Timeline<E>>,
}

impl<E: StoredEntry> FileTimeline<E> {
    /// Opens the entries in `folder`, creating it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is open already, here or in another process, or if it cannot be
    /// created.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Ok(Self {
            timeline: Arc::new(Timeline::open(folder.into())?),
        })
    }

    /// Returns the number of lines that queries skipped, counted at each query, and of files that
    /// were quarantined, because they could not be read.
    pub fn damaged(&self) -> u64 {
        self.timeline.damaged()
    }
}

#[async_trait]
impl<E: StoredEntry> TimelineStore<E> for FileTimeline<E> {
    async fn append(&self, principal: &Principal, entry: E) -> Result<(), StoreError> {
        // Not sent to a blocking thread: writing into the page cache is cheaper than the way there and
        // back.
        self.timeline.append(principal, &entry)
    }

    async fn query_recent(&self, principal: &Principal, since: Timestamp, limit: usize) -> Result<Vec<E>, StoreError> {
        self.timeline.recent(principal, since, limit).await
    }

    async fn purge(&self, before: Timestamp, max: usize) -> Result<u64, StoreError> {
        self.timeline.purge(before, max).await
    }
}
