//! All stores of a data folder.

use std::path::Path;
use std::sync::Arc;

use rockbot_core::Clock;
use rockbot_core::store::{StoreError, WorkingLimits};

use super::{
    FileConversationLog, FileFeedbackStore, FileLongTermMemory, FileRulesStore, FileSkillStore, FileSkillUsageStore,
    FileWorkingMemory,
};
use crate::{ConversationLogOptions, FileOptions, WorkingMemoryOptions};

/// How the stores of a [`FileMemory`] are kept. By default as each of them is by itself.
#[derive(Debug, Clone, Default)]
pub struct FileMemoryOptions {
    /// The clock of all stores.
    pub clock: Option<Arc<dyn Clock>>,
    /// How much each namespace of working memory holds.
    pub working_limits: WorkingLimits,
    /// How long the conversation log may become.
    pub conversation_log: ConversationLogOptions,
}

/// The stores of a data folder, each in the place that the original has for it. The folder is held as a whole: a second
/// process is refused.
///
/// Conversations and the journal of turns, which stand there too, belong to the host.
///
/// ```
/// use rockbot_memory::FileMemory;
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
pub struct FileMemory {
    /// `rules.md` and `rules/`. First, since it holds the whole folder.
    pub rules: Arc<FileRulesStore>,
    /// `memory/`.
    pub long_term: Arc<FileLongTermMemory>,
    /// `working-memory/`.
    pub working: Arc<FileWorkingMemory>,
    /// `skills/`.
    pub skills: Arc<FileSkillStore>,
    /// `skill-usage/`.
    pub skill_usage: Arc<FileSkillUsageStore>,
    /// `feedback/`.
    pub feedback: Arc<FileFeedbackStore>,
    /// `conversation-log/`.
    pub conversation_log: Arc<FileConversationLog>,
}

impl FileMemory {
    /// Opens the stores in the data folder `folder`, which is made if it is missing, with the default options.
    ///
    /// # Errors
    ///
    /// Fails when one of the folders is open already, here or in another process, and when one cannot be made.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(folder, FileMemoryOptions::default())
    }

    /// Opens the stores in the data folder `folder` with `options`.
    ///
    /// # Errors
    ///
    /// Fails as [`FileMemory::open`] does.
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

    /// Writes down what is only held back, for other programs that read documents only: call it when the host stops.
    /// Everything is in files at any time.
    ///
    /// # Errors
    ///
    /// Fails when a store cannot be written.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.working.flush().await
    }
}
