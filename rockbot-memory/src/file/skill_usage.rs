//! The uses of skills that survive the process.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{SkillUsage, StoreError, TimelineStore};
use rockbot_core::{Principal, Timestamp};

use crate::storage::session_lines::{Line, SessionLines};

/// A [`SkillUsageStore`](rockbot_core::store::SkillUsageStore) in a folder, which one process at a time can open.
///
/// An append resolves when the operating system has it: it survives `kill -9`, and takes microseconds. A line has less
/// than 1 MiB.
#[derive(Debug)]
pub struct FileSkillUsageStore {
    lines: Arc<SessionLines<SkillUsage>>,
}

impl Line for SkillUsage {
    const WHAT: &'static str = "the use of a skill";
}

impl FileSkillUsageStore {
    /// Opens the uses in `folder`, which is made if it is missing.
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
impl TimelineStore<SkillUsage> for FileSkillUsageStore {
    async fn append(&self, principal: &Principal, usage: SkillUsage) -> Result<(), StoreError> {
        self.lines.append(principal, &usage)
    }

    async fn query_recent(
        &self,
        principal: &Principal,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<SkillUsage>, StoreError> {
        self.lines.recent(principal, since, limit).await
    }

    async fn purge(&self, before: Timestamp, most: usize) -> Result<u64, StoreError> {
        self.lines.purge(before, most).await
    }
}
