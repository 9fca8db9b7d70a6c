//! A conversation as a whole: read, moved, copied.

use rockbot_core::chat::Role;
use rockbot_core::content::ContentError;
use rockbot_core::store::{
    ConversationDocument, ConversationMemory, ConversationPage, ConversationQuery, ConversationTurn, StoreError,
};
use rockbot_core::{SessionId, TurnId};

use super::Agent;
use crate::engine::bounded;

/// Maximum number of entries of a document. Stores keep fewer of them: 50 by default.
const MAX_ENTRIES: usize = 10_000;

/// A handle to the conversation of one session and the principal of its [`Agent`].
///
/// It reads and writes the entries of the conversation memory. A turn that works in the session
/// meanwhile is not among them, and is appended when it ends.
///
/// # Examples
///
/// ```
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::AgentHost;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new().says("Tea.").says("Rooibos.").says("Mint.");
/// let host = AgentHost::in_memory().chat(model).build()?;
/// let agent = host.agent();
/// let first = agent.ask("main", "What can I drink?").await?;
/// agent.ask("main", "Which one?").await?;
///
/// let other = agent.conversation("main").fork(&first.turn, "other").await?;
/// agent.ask(other.session().clone(), "Without caffeine?").await?;
/// assert_eq!(other.history().await?.len(), 4);
///
/// let document = serde_json::to_string(&other.export().await?)?;
/// let copy = agent.conversation("copy");
/// copy.import(serde_json::from_str(&document)?).await?;
/// assert_eq!(copy.history().await?, other.history().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Conversation {
    agent: Agent,
    session: SessionId,
}

/// A conversation that was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversationError {
    /// The session that the entries were to go to has some already.
    #[error("session `{0}` has a conversation already: name a new session, or reset this one first")]
    NotEmpty(SessionId),
    /// A newer version of this library wrote the document.
    #[error(
        "the document has version {found}, and version {} is the newest known one: use a newer program",
        ConversationDocument::VERSION
    )]
    Version {
        /// Version of the document.
        found: u32,
    },
    /// The document has more than 10 000 entries.
    #[error("the document has {count} entries, and at most {MAX_ENTRIES} can be imported: remove the oldest ones")]
    TooLong {
        /// Number of entries.
        count: usize,
    },
    /// An entry has the role of a tool; results stand in the rounds of an answer.
    #[error(
        "entry {at} of the document has the role of a tool: put its result into the `rounds` of the answer behind it"
    )]
    ToolEntry {
        /// Index of the entry.
        at: usize,
    },
    /// The content of an entry has too many parts, or a part is too large.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The conversation does not have the turn, or no longer.
    #[error("the conversation has no turn {0}: take the id from an entry of its history")]
    NoTurn(TurnId),
    /// The conversation memory failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ConversationError {
    /// Returns `true` if the same call may succeed later.
    pub fn retry_helps(&self) -> bool {
        matches!(self, Self::Store(error) if error.retry_helps())
    }
}

impl Conversation {
    pub(super) fn new(agent: Agent, session: SessionId) -> Self {
        Self { agent, session }
    }

    /// Returns the session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the entries that the conversation memory keeps, oldest first, with the calls of each
    /// turn.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversation cannot be read.
    pub async fn history(&self) -> Result<Vec<ConversationTurn>, ConversationError> {
        let memory = self.memory();
        let principal = &self.agent.principal;
        Ok(memory.recent(principal, &self.session, usize::MAX).await?)
    }

    /// Returns a page of the entries that the conversation memory keeps, oldest first: for a
    /// program that shows long conversations, or the entries of a day.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversation cannot be read.
    pub async fn page(&self, query: &ConversationQuery) -> Result<ConversationPage, ConversationError> {
        let memory = self.memory();
        let principal = &self.agent.principal;
        Ok(memory.page(principal, &self.session, query).await?)
    }

    /// Returns the conversation as a document.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversation cannot be read.
    pub async fn export(&self) -> Result<ConversationDocument, ConversationError> {
        Ok(ConversationDocument::new(self.session.clone(), self.history().await?))
    }

    /// Fills the session, which must be new, with the entries of a document. The conversation memory
    /// keeps the last of them, as many as its window has, and their calls within the limits of a
    /// turn's own.
    ///
    /// The entries then are this principal's conversation, and the model reads them as such: import
    /// only texts that the user may say and texts that the model may have said.
    ///
    /// # Errors
    ///
    /// Returns an error if the session has a conversation, the document cannot be imported, or the
    /// conversation memory fails.
    pub async fn import(&self, mut document: ConversationDocument) -> Result<(), ConversationError> {
        check(&document)?;
        let memory = self.memory();
        let principal = &self.agent.principal;
        if !memory.recent(principal, &self.session, 1).await?.is_empty() {
            return Err(ConversationError::NotEmpty(self.session.clone()));
        }
        for entry in &mut document.entries {
            entry.rounds = bounded(&entry.rounds);
            self.agent
                .shared
                .turns
                .engine()
                .media
                .keep(principal, &mut entry.content)
                .await?;
        }
        Ok(memory.append(principal, &self.session, document.entries).await?)
    }

    /// Copies the conversation up to and including the turn `at` into `session`, which must be new,
    /// and returns its handle. This conversation stays as it is.
    ///
    /// # Errors
    ///
    /// Returns an error if the conversation does not have the turn, `session` has a conversation, or
    /// the conversation memory fails.
    pub async fn fork(&self, at: &TurnId, session: impl Into<SessionId>) -> Result<Self, ConversationError> {
        let mut document = self.export().await?;
        if !document.truncate_at(at) {
            return Err(ConversationError::NoTurn(at.clone()));
        }
        let fork = Self::new(self.agent.clone(), session.into());
        fork.import(document).await?;
        Ok(fork)
    }

    fn memory(&self) -> &dyn ConversationMemory {
        self.agent.memory()
    }
}

fn check(document: &ConversationDocument) -> Result<(), ConversationError> {
    let count = document.entries.len();
    if document.version > ConversationDocument::VERSION {
        return Err(ConversationError::Version {
            found: document.version,
        });
    }
    if count > MAX_ENTRIES {
        return Err(ConversationError::TooLong { count });
    }
    for (at, entry) in document.entries.iter().enumerate() {
        if entry.role == Role::Tool {
            return Err(ConversationError::ToolEntry { at });
        }
        entry.content.check_bounds()?;
    }
    Ok(())
}
