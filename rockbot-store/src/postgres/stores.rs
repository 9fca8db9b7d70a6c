//! [`Postgres`]: all stores over one database.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::store::{
    ConversationLog, ConversationMemory, FeedbackStore, LongTermMemory, MediaStore, RulesStore, SharedDocuments,
    SkillStore, SkillUsageStore, StoreError, VectorCache, WorkingMemory,
};
use rockbot_core::subsystem::{Declarations, Idle, Parts, Running, Stage, Subsystem};
use rockbot_core::turn::TurnJournal;
use rockbot_core::{BoxError, Principal};

use super::PostgresOptions;
use super::conversation::PostgresConversationMemory;
use super::conversation_log::PostgresConversationLog;
use super::journal::PostgresTurnJournal;
use super::long_term::PostgresLongTermMemory;
use super::media::PostgresMediaStore;
use super::rules::PostgresRulesStore;
use super::shared_documents::PostgresSharedDocuments;
use super::skills::PostgresSkillStore;
use super::storage::Database;
use super::storage::row::from_column;
use super::timeline::{PostgresFeedbackStore, PostgresSkillUsageStore};
use super::vectors::PostgresVectorCache;
use super::working::PostgresWorkingMemory;

/// All stores in one PostgreSQL database, which many processes can use at the same time.
///
/// Add it to the builder of a host, beside a `Memory` in any order, or pass single stores to one.
/// Images and files of messages are kept in the database, too, unless the builder is given a store
/// for them.
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
    pub journal: Arc<PostgresTurnJournal>,
    /// Conversation memory: the last turns of each session.
    pub conversations: Arc<PostgresConversationMemory>,
    /// The images and files of messages.
    pub media: Arc<PostgresMediaStore>,
    /// Rules.
    pub rules: Arc<PostgresRulesStore>,
    /// Long-term memory.
    pub long_term: Arc<PostgresLongTermMemory>,
    /// Working memory.
    pub working: Arc<PostgresWorkingMemory>,
    /// Skills.
    pub skills: Arc<PostgresSkillStore>,
    /// Uses of skills.
    pub skill_usage: Arc<PostgresSkillUsageStore>,
    /// The vectors of long-term memory.
    pub vectors: Arc<PostgresVectorCache>,
    /// Feedback.
    pub feedback: Arc<PostgresFeedbackStore>,
    /// Documents that the processes of an agent change one after another, such as its schedule.
    pub shared_documents: Arc<PostgresSharedDocuments>,
    /// The conversation log, which a host keeps only if it is given: by
    /// [`Postgres::with_conversation_log`].
    pub conversation_log: Arc<PostgresConversationLog>,
    logs_conversations: bool,
    database: Arc<Database>,
}

impl Postgres {
    /// Connects to the database at `url` with the default options, and makes or migrates its tables.
    ///
    /// With `?sslmode=require` the connection is encrypted, and the server has to prove who it is;
    /// otherwise it is not encrypted.
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
        let database = Database::open(url, &options).await?;
        let opened = Arc::new(database);
        let database = || opened.clone();
        let working = PostgresWorkingMemory::new(database(), options.working_limits, options.clock.clone());
        let media = PostgresMediaStore::new(database(), options.clock.clone());
        let shared_documents = PostgresSharedDocuments::new(database(), options.clock.clone());
        Ok(Self {
            journal: Arc::new(PostgresTurnJournal::new(database(), options.lease, options.clock)),
            shared_documents: Arc::new(shared_documents),
            media: Arc::new(media),
            long_term: Arc::new(PostgresLongTermMemory::new(database())),
            conversations: Arc::new(PostgresConversationMemory::new(database(), options.conversation_window)),
            rules: Arc::new(PostgresRulesStore::new(database())),
            working: Arc::new(working),
            skills: Arc::new(PostgresSkillStore::new(database())),
            skill_usage: Arc::new(PostgresSkillUsageStore::new(database())),
            vectors: Arc::new(PostgresVectorCache::new(database())),
            feedback: Arc::new(PostgresFeedbackStore::new(database())),
            conversation_log: Arc::new(PostgresConversationLog::new(database(), options.conversation_log)),
            logs_conversations: false,
            database: opened,
        })
    }

    /// Returns the principals that have memories, skills, rules, conversations, feedback or uses of
    /// skills, in the order of their names.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read.
    pub async fn principals(&self) -> Result<Vec<Principal>, StoreError> {
        let tables = [
            "memory",
            "skill",
            "rule",
            "time_zone",
            "session",
            "feedback",
            "skill_usage",
        ];
        let tables = tables.map(|table| format!("SELECT principal FROM {table}"));
        let rows = self.database.read(&tables.join(" UNION "), &[]).await?;
        let mut principals: Vec<_> = rows.iter().map(|row| from_column(row.get(0)).into()).collect();
        principals.sort();
        Ok(principals)
    }

    /// Gives the host the conversation log, too, which then keeps every message of all conversations.
    /// Default: not given.
    #[must_use]
    pub fn with_conversation_log(mut self) -> Self {
        self.logs_conversations = true;
        self
    }
}

/// Provides the stores to the host that it is added to, and the journal of its turns, which hosts of
/// other agents may share.
///
/// A journal that the host's builder is given takes precedence.
#[async_trait]
impl Subsystem for Postgres {
    fn name(&self) -> &str {
        "postgres"
    }

    fn stage(&self) -> Stage {
        Stage::Memory
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        declarations.provide::<dyn TurnJournal>(self.journal.clone());
        declarations.provide::<dyn ConversationMemory>(self.conversations.clone());
        declarations.provide::<dyn MediaStore>(self.media.clone());
        declarations.provide::<dyn LongTermMemory>(self.long_term.clone());
        declarations.provide::<dyn RulesStore>(self.rules.clone());
        declarations.provide::<dyn WorkingMemory>(self.working.clone());
        declarations.provide::<dyn SkillStore>(self.skills.clone());
        declarations.provide::<dyn SkillUsageStore>(self.skill_usage.clone());
        declarations.provide::<dyn FeedbackStore>(self.feedback.clone());
        declarations.provide::<dyn VectorCache>(self.vectors.clone());
        declarations.provide::<dyn SharedDocuments>(self.shared_documents.clone());
        if self.logs_conversations {
            declarations.provide::<dyn ConversationLog>(self.conversation_log.clone());
        }
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Ok(Box::new(Idle))
    }
}
