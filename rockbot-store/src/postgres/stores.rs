//! [`Postgres`]: all stores over one database.

use std::sync::Arc;

use rockbot_core::store::StoreError;

use super::PostgresOptions;
use super::conversation::PostgresConversationMemory;
use super::conversation_log::PostgresConversationLog;
use super::journal::PostgresTurnJournal;
use super::rules::PostgresRulesStore;
use super::skills::PostgresSkillStore;
use super::storage::Database;
use super::timeline::{PostgresFeedbackStore, PostgresSkillUsageStore};
use super::working::PostgresWorkingMemory;

/// All stores in one PostgreSQL database, which many processes can use at the same time.
///
/// ```no_run
/// use rockbot_store::postgres::Postgres;
///
/// # async fn connect() -> Result<(), rockbot_core::BoxError> {
/// let stores = Postgres::connect("postgres://agent:secret@127.0.0.1:5432/agents").await?;
/// # let _ = stores;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Postgres {
    /// The journal of turns.
    pub journal: PostgresTurnJournal,
    /// Conversation memory: the last turns of each session.
    pub conversations: PostgresConversationMemory,
    /// Rules.
    pub rules: PostgresRulesStore,
    /// Working memory.
    pub working: PostgresWorkingMemory,
    /// Skills.
    pub skills: PostgresSkillStore,
    /// Uses of skills.
    pub skill_usage: PostgresSkillUsageStore,
    /// Feedback.
    pub feedback: PostgresFeedbackStore,
    /// The conversation log.
    pub conversation_log: PostgresConversationLog,
}

impl Postgres {
    /// Connects to the database at `url` with the default options, and makes or migrates its tables.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL cannot be understood, if the server cannot be reached or refuses
    /// the user, or if the tables are of a newer version. The cause is a
    /// [`PostgresError`](super::PostgresError).
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(url, PostgresOptions::default()).await
    }

    /// Connects to the database at `url` with `options`.
    ///
    /// # Errors
    ///
    /// Returns an error under the same conditions as [`Postgres::connect`].
    pub async fn connect_with(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let database = Database::open(url, &options.schema, options.max_connections).await?;
        let opened = Arc::new(database);
        let database = || opened.clone();
        Ok(Self {
            journal: PostgresTurnJournal::new(database(), options.clock.clone()),
            conversations: PostgresConversationMemory::new(database(), options.conversation_window),
            rules: PostgresRulesStore::new(database()),
            working: PostgresWorkingMemory::new(database(), options.working_limits, options.clock),
            skills: PostgresSkillStore::new(database()),
            skill_usage: PostgresSkillUsageStore::new(database()),
            feedback: PostgresFeedbackStore::new(database()),
            conversation_log: PostgresConversationLog::new(database(), options.conversation_log),
        })
    }
}
