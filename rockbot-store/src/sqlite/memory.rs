//! [`SqliteMemory`]: all stores over one file.

use std::path::Path;
use std::sync::Arc;

use rockbot_core::Clock;
use rockbot_core::store::{StoreError, WorkingLimits};

use super::conversation::SqliteConversationMemory;
use super::conversation_log::SqliteConversationLog;
use super::feedback::SqliteFeedbackStore;
use super::long_term::SqliteLongTermMemory;
use super::rules::SqliteRulesStore;
use super::skill_usage::SqliteSkillUsageStore;
use super::skills::SqliteSkillStore;
use super::storage::Database;
use super::working::SqliteWorkingMemory;
use crate::{ConversationLogOptions, FileOptions};

/// Options of a [`SqliteMemory`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqliteMemoryOptions {
    /// The clock for the expiry of entries of working memory. Default: the system's clock.
    pub clock: Option<Arc<dyn Clock>>,
    /// Capacity of each namespace of working memory.
    pub working_limits: WorkingLimits,
    /// Maximum size of the conversation log.
    pub conversation_log: ConversationLogOptions,
    /// Maximum number of entries that conversation memory keeps of a session. Default 50.
    pub conversation_window: usize,
}

impl Default for SqliteMemoryOptions {
    fn default() -> Self {
        Self {
            clock: None,
            working_limits: WorkingLimits::default(),
            conversation_log: ConversationLogOptions::default(),
            conversation_window: 50,
        }
    }
}

impl SqliteMemoryOptions {
    /// Sets the clock for the expiry of entries of working memory. Default: the system's clock.
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

    /// Sets the maximum number of entries that conversation memory keeps of a session. Default 50.
    #[must_use]
    pub fn with_conversation_window(mut self, conversation_window: usize) -> Self {
        self.conversation_window = conversation_window;
        self
    }
}

/// All stores in one SQLite file, which one process at a time can open.
///
/// Pass the stores to a `Memory` of `rockbot-memory`, and `conversations` to the host. The file is
/// closed when the last store is dropped; that drop blocks until all queued writes are committed.
///
/// ```
/// # use rockbot_core::chat::Provenance;
/// # use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery};
/// # use rockbot_core::{Principal, Timestamp};
/// use rockbot_store::sqlite::SqliteMemory;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::BoxError> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("agent.db");
/// let (me, memory) = (Principal::default(), SqliteMemory::open(path)?);
/// let entry = MemoryEntry::new("m1", "likes tea", Timestamp::default(), Provenance::USER);
/// memory.long_term.remember(&me, entry).await?;
/// let found = memory.long_term.search(&me, &MemoryQuery::new("tea")).await?;
/// assert_eq!(found[0].item.content, "likes tea");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct SqliteMemory {
    /// Conversation memory: the last turns of each session.
    pub conversations: SqliteConversationMemory,
    /// Rules.
    pub rules: SqliteRulesStore,
    /// Long-term memory.
    pub long_term: SqliteLongTermMemory,
    /// Working memory.
    pub working: SqliteWorkingMemory,
    /// Skills.
    pub skills: SqliteSkillStore,
    /// Uses of skills.
    pub skill_usage: SqliteSkillUsageStore,
    /// Feedback.
    pub feedback: SqliteFeedbackStore,
    /// The conversation log.
    pub conversation_log: SqliteConversationLog,
}

impl SqliteMemory {
    /// Opens the file at `path` with the default options, creating it and its folders if they are
    /// missing.
    ///
    /// The file is checked for damage (`quick_check`), which takes as long as reading it once.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is open already, here or in another process, if it is damaged, of
    /// a newer version or of another program, or if it cannot be read or created. The source is a
    /// [`SqliteError`](super::SqliteError).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, SqliteMemoryOptions::default())
    }

    /// Opens the file at `path` with `options`.
    ///
    /// # Errors
    ///
    /// Returns an error under the same conditions as [`SqliteMemory::open`].
    pub fn open_with(path: impl AsRef<Path>, options: SqliteMemoryOptions) -> Result<Self, StoreError> {
        let database = Database::open(path.as_ref())?;
        Ok(Self::over(&Arc::new(database), options))
    }

    /// Creates the stores over an open `database`.
    pub(super) fn over(database: &Arc<Database>, options: SqliteMemoryOptions) -> Self {
        let clock = options.clock.unwrap_or_else(|| FileOptions::default().clock);
        let log = options.conversation_log;
        let database = || database.clone();
        Self {
            conversations: SqliteConversationMemory::new(database(), options.conversation_window),
            rules: SqliteRulesStore::new(database()),
            long_term: SqliteLongTermMemory::new(database()),
            working: SqliteWorkingMemory::new(database(), options.working_limits, clock),
            skills: SqliteSkillStore::new(database()),
            skill_usage: SqliteSkillUsageStore::new(database()),
            feedback: SqliteFeedbackStore::new(database()),
            conversation_log: SqliteConversationLog::new(database(), log),
        }
    }
}
