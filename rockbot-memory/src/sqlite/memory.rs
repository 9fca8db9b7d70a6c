//! The file with all stores.

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

/// How the stores of a [`SqliteMemory`] are kept.
#[derive(Debug, Clone)]
pub struct SqliteMemoryOptions {
    /// The clock by which entries of working memory expire. Default: the system's.
    pub clock: Option<Arc<dyn Clock>>,
    /// How much each namespace of working memory holds.
    pub working_limits: WorkingLimits,
    /// How long the conversation log may become.
    pub conversation_log: ConversationLogOptions,
    /// How many entries a session of conversation memory keeps. Default 50.
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

/// All stores in one SQLite file, which one process at a time can open: give them to a [`Memory`](crate::Memory), and
/// the conversations to the host.
///
/// The file is closed when the last of them is dropped, which waits until what was asked for is written.
///
/// ```
/// # use rockbot_core::chat::Provenance;
/// # use rockbot_core::store::{LongTermMemory, MemoryEntry, MemoryQuery};
/// # use rockbot_core::{Principal, Timestamp};
/// use rockbot_memory::SqliteMemory;
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
pub struct SqliteMemory {
    /// The last turns of each session.
    pub conversations: SqliteConversationMemory,
    /// What the agent must keep to.
    pub rules: SqliteRulesStore,
    /// Facts.
    pub long_term: SqliteLongTermMemory,
    /// Texts that are kept for a while.
    pub working: SqliteWorkingMemory,
    /// What the agent knows how to do.
    pub skills: SqliteSkillStore,
    /// Which skills were used.
    pub skill_usage: SqliteSkillUsageStore,
    /// Signs of how well the agent did.
    pub feedback: SqliteFeedbackStore,
    /// Everything that was said.
    pub conversation_log: SqliteConversationLog,
}

impl SqliteMemory {
    /// Opens the file at `path`, which is made, with its folders, if it is missing, with the default options.
    ///
    /// The file is looked over, which takes as long as reading it.
    ///
    /// # Errors
    ///
    /// Fails when the file is open already, here or in another process, when it is damaged, of a newer version or of
    /// another program, and when it cannot be read or made. The source is a [`SqliteError`](super::SqliteError).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, SqliteMemoryOptions::default())
    }

    /// Opens the file at `path` with `options`.
    ///
    /// # Errors
    ///
    /// Fails as [`SqliteMemory::open`] does.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteMemoryOptions) -> Result<Self, StoreError> {
        let database = Database::open(path.as_ref())?;
        Ok(Self::over(&Arc::new(database), options))
    }

    /// The stores in `database`.
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
