//! [`FileMemory`]: all stores of a data folder.
//!
//! Each store holds its own lock, and `FileMemory` one on the data folder: stores may lie
//! elsewhere, and be opened alone.

use std::path::Path;
use std::sync::Arc;

use rockbot_core::Clock;
use rockbot_core::store::{StoreError, WorkingLimits};

use super::{
    FileConversationLog, FileFeedbackStore, FileLongTermMemory, FileRulesStore, FileSkillStore, FileSkillUsageStore,
    FileWorkingMemory,
};
use crate::{ConversationLogOptions, FileOptions, WorkingMemoryOptions};

/// Options of a [`FileMemory`]. The defaults are the defaults of the stores.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FileMemoryOptions {
    /// The clock of all stores. Default: the system's clock.
    pub clock: Option<Arc<dyn Clock>>,
    /// Capacity of each namespace of working memory.
    pub working_limits: WorkingLimits,
    /// Maximum size of the conversation log.
    pub conversation_log: ConversationLogOptions,
}

impl FileMemoryOptions {
    /// Sets the clock of all stores. Default: the system's clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the capacity of each namespace of working memory.
    #[must_use]
    pub fn with_working_limits(mut self, working_limits: WorkingLimits) -> Self {
        self.working_limits = working_limits;
        self
    }

    /// Sets the maximum size of the conversation log.
    #[must_use]
    pub fn with_conversation_log(mut self, conversation_log: ConversationLogOptions) -> Self {
        self.conversation_log = conversation_log;
        self
    }
}

/// All stores of a data folder, each in its standard subfolder.
///
/// The folder is locked as a whole: a second process that opens it gets an error. Conversations
/// and the turn journal, which are in the same folder, belong to the host and are not opened
/// here.
///
/// ```
/// use rockbot_store::file::FileMemory;
///
/// # fn main() -> Result<(), rockbot_core::BoxError> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path();
/// let memory = FileMemory::open(path)?;
/// assert!(path.join("memory").is_dir());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct FileMemory {
    /// Rules, in `rules.md` and `rules/`.
    // Opened first, because its lock is the lock of the whole data folder.
    pub rules: Arc<FileRulesStore>,
    /// Long-term memory, in `memory/`.
    pub long_term: Arc<FileLongTermMemory>,
    /// Working memory, in `working-memory/`.
    pub working: Arc<FileWorkingMemory>,
    /// Skills, in `skills/`.
    pub skills: Arc<FileSkillStore>,
    /// Uses of skills, in `skill-usage/`.
    pub skill_usage: Arc<FileSkillUsageStore>,
    /// Feedback, in `feedback/`.
    pub feedback: Arc<FileFeedbackStore>,
    /// The conversation log, in `conversation-log/`.
    pub conversation_log: Arc<FileConversationLog>,
}

impl FileMemory {
    /// Opens the stores in the data folder `folder`, creating it if it is missing, with the default
    /// options.
    ///
    /// # Errors
    ///
    /// Returns an error if a folder is open already, here or in another process, or cannot be
    /// created.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(folder, FileMemoryOptions::default())
    }

    /// Opens the stores in the data folder `folder` with `options`.
    ///
    /// # Errors
    ///
    /// Returns an error under the same conditions as [`FileMemory::open`].
    pub fn open_with(folder: impl AsRef<Path>, options: FileMemoryOptions) -> Result<Self, StoreError> {
        let folder = folder.as_ref();
        let clock = options.clock.unwrap_or_else(|| FileOptions::default().clock);
        let documents = FileOptions { clock: clock.clone() };
        let working = WorkingMemoryOptions {
            limits: options.working_limits,
            clock,
        };
        let log = options.conversation_log;
        Ok(Self {
            rules: FileRulesStore::open(folder)?.into(),
            long_term: FileLongTermMemory::open_with(folder.join("memory"), documents.clone())?.into(),
            working: FileWorkingMemory::open_with(folder.join("working-memory"), working)?.into(),
            skills: FileSkillStore::open_with(folder.join("skills"), documents)?.into(),
            skill_usage: FileSkillUsageStore::open(folder.join("skill-usage"))?.into(),
            feedback: FileFeedbackStore::open(folder.join("feedback"))?.into(),
            conversation_log: FileConversationLog::open_with(folder.join("conversation-log"), log)?.into(),
        })
    }

    /// Compacts the logs of working memory into their documents, for programs that read only documents.
    ///
    /// Call it when the host stops. It is not needed for durability: every change is in a file when
    /// its call resolves.
    ///
    /// # Errors
    ///
    /// Returns an error if a store cannot be written.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.working.flush().await
    }
}
