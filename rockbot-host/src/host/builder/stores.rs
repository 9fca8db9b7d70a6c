//! [`Stores`]: where a host keeps its turns, its conversations and its memory.

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::store::{
    ConversationLog, ConversationMemory, FeedbackStore, LongTermMemory, MediaStore, RulesStore, SkillStore,
    SkillUsageStore, WorkingMemory,
};
use rockbot_core::turn::TurnJournal;
use rockbot_store::file::Durability;

use super::AgentHostBuilder;
use crate::routing::RoutingLog;

/// The stores of a host, for [`AgentHostBuilder::stores`].
///
/// A store that is `None` has the default that its documentation states: on disk when the host
/// has a [data folder](AgentHostBuilder::data_dir), in memory or absent otherwise. Stores of
/// memory are shared with every [`Subsystem`](rockbot_core::subsystem::Subsystem) that requires
/// them. Subsystems such as `rockbot_memory::Memory` provide all of them at once; a store that is
/// provided twice keeps the host from being built.
///
/// # Examples
///
/// ```
/// use rockbot_core::store::{InMemoryWorkingMemory, WorkingMemory};
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::{AgentHost, Stores};
///
/// let stores = Stores::new().with_working_memory(InMemoryWorkingMemory::new());
/// let host = AgentHost::in_memory().chat(ScriptedModel::new()).stores(stores).build()?;
/// assert!(host.parts().get::<dyn WorkingMemory>().is_some());
/// # Ok::<_, rockbot_host::BuildError>(())
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Stores {
    /// The journal of turns. Default: that of a subsystem, else the folder `turns` of the data folder, or in memory.
    pub journal: Option<Arc<dyn TurnJournal>>,
    /// The journal of turns that other agents use, too. It takes precedence over `journal`. Default:
    /// none.
    pub shared_journal: Option<Arc<dyn TurnJournal>>,
    /// The durability of journal and conversations in the data folder after a crash. Default
    /// [`Durability::Process`].
    pub durability: Option<Durability>,
    /// The conversations. Default: the folder `conversations` of the data folder, or in memory.
    pub conversation_memory: Option<Arc<dyn ConversationMemory>>,
    /// The images and files of messages. Default: that of a subsystem, else the folder `media` of the data folder, or
    /// in memory.
    pub media: Option<Arc<dyn MediaStore>>,
    /// The retention of images and files. Default 30 days.
    pub media_retention: Option<Duration>,
    /// The log of every message of all conversations. Default: none.
    pub conversation_log: Option<Arc<dyn ConversationLog>>,
    /// The facts that the agent learned. Default: none.
    pub long_term_memory: Option<Arc<dyn LongTermMemory>>,
    /// The notes of work in progress, and the originals of offloaded tool results. Default: none.
    pub working_memory: Option<Arc<dyn WorkingMemory>>,
    /// The feedback of users. Default: in memory.
    pub feedback: Option<Arc<dyn FeedbackStore>>,
    /// The rules that users gave the agent. Default: none.
    pub rules: Option<Arc<dyn RulesStore>>,
    /// The agent's skills. Default: none.
    pub skills: Option<Arc<dyn SkillStore>>,
    /// The uses of skills. Default: none.
    pub skill_usage: Option<Arc<dyn SkillUsageStore>>,
    /// The log of the tier selector's decisions, written when their turn has ended. Default: the file
    /// `tier-routing-log.jsonl` of the data folder, with the first words of the messages, or in memory.
    pub routing_log: Option<RoutingLog>,
}

impl Stores {
    /// Creates a set whose stores all have their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a journal of turns that other agents use, too. The host sees the runs of its own agent
    /// alone, under the name of the agent.
    #[must_use]
    pub fn with_shared_journal(mut self, journal: Arc<dyn TurnJournal>) -> Self {
        self.shared_journal = Some(journal);
        self
    }

    /// Sets the journal of turns. Two hosts never use one journal this way: each would resume the
    /// turns of the other.
    #[must_use]
    pub fn with_journal(mut self, journal: impl TurnJournal) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// Sets the durability of journal and conversations in the data folder after a crash.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets the store of conversations.
    #[must_use]
    pub fn with_conversation_memory(mut self, memory: impl ConversationMemory) -> Self {
        self.conversation_memory = Some(Arc::new(memory));
        self
    }

    /// Sets the store of images and files.
    #[must_use]
    pub fn with_media(mut self, store: impl MediaStore) -> Self {
        self.media = Some(Arc::new(store));
        self
    }

    /// Sets the retention of images and files. A message that refers to an image or file that is
    /// gone shows the model a description.
    #[must_use]
    pub fn with_media_retention(mut self, retention: Duration) -> Self {
        self.media_retention = Some(retention);
        self
    }

    /// Sets the log of every message.
    #[must_use]
    pub fn with_conversation_log(mut self, log: impl ConversationLog) -> Self {
        self.conversation_log = Some(Arc::new(log));
        self
    }

    /// Sets the store of the facts that the agent learned.
    #[must_use]
    pub fn with_long_term_memory(mut self, memory: impl LongTermMemory) -> Self {
        self.long_term_memory = Some(Arc::new(memory));
        self
    }

    /// Sets the store of the notes of work in progress.
    #[must_use]
    pub fn with_working_memory(mut self, memory: impl WorkingMemory) -> Self {
        self.working_memory = Some(Arc::new(memory));
        self
    }

    /// Sets the store of users' feedback.
    #[must_use]
    pub fn with_feedback(mut self, store: impl FeedbackStore) -> Self {
        self.feedback = Some(Arc::new(store));
        self
    }

    /// Sets the store of rules.
    #[must_use]
    pub fn with_rules(mut self, store: impl RulesStore) -> Self {
        self.rules = Some(Arc::new(store));
        self
    }

    /// Sets the stores of skills and of their uses.
    #[must_use]
    pub fn with_skills(mut self, skills: impl SkillStore, usage: impl SkillUsageStore) -> Self {
        self.skills = Some(Arc::new(skills));
        self.skill_usage = Some(Arc::new(usage));
        self
    }

    /// Sets the log of the tier selector's decisions.
    #[must_use]
    pub fn with_routing_log(mut self, log: RoutingLog) -> Self {
        self.routing_log = Some(log);
        self
    }
}

/// Storage: where turns, conversations and memory are kept.
impl AgentHostBuilder {
    /// Sets the stores. A store that is `None` keeps the value that was set before.
    pub fn stores(mut self, stores: Stores) -> Self {
        self.journal = stores.journal.or(self.journal);
        self.shared_journal = stores.shared_journal.or(self.shared_journal);
        self.durability = stores.durability.unwrap_or(self.durability);
        self.routing_log = stores.routing_log.or(self.routing_log);
        self.media = stores.media.or(self.media);
        self.media_retention = stores.media_retention.unwrap_or(self.media_retention);
        self.give_all(stores.conversation_memory)
            .give_all(stores.conversation_log)
            .give_all(stores.long_term_memory)
            .give_all(stores.working_memory)
            .give_all(stores.feedback)
            .give_all(stores.rules)
            .give_all(stores.skills)
            .give_all(stores.skill_usage)
    }

    fn give_all<T: ?Sized + Send + Sync + 'static>(self, parts: Option<Arc<T>>) -> Self {
        parts.into_iter().fold(self, Self::give)
    }

    /// Gives a part of type `T` to every [`Subsystem`](rockbot_core::subsystem::Subsystem) that
    /// requires it.
    ///
    /// A part that is given twice keeps the host from being built.
    pub fn give<T: ?Sized + Send + Sync + 'static>(mut self, part: Arc<T>) -> Self {
        self.given
            .push(Box::new(move |declarations| declarations.provide::<T>(part)));
        self
    }
}
