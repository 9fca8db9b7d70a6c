//! Where the agent remembers.

use std::sync::Arc;

use rockbot_core::store::{
    ConversationLog, ConversationMemory, FeedbackStore, LongTermMemory, RulesStore, SkillStore, SkillUsageStore,
    WorkingMemory,
};

use super::AgentHostBuilder;

impl AgentHostBuilder {
    /// Where conversations are remembered. Default: in memory, or in the data folder if there is one.
    pub fn conversation_memory(self, memory: impl ConversationMemory) -> Self {
        self.give::<dyn ConversationMemory>(Arc::new(memory))
    }

    /// Where the agent keeps what it learned.
    pub fn long_term_memory(self, memory: impl LongTermMemory) -> Self {
        self.give::<dyn LongTermMemory>(Arc::new(memory))
    }

    /// Where the agent keeps what it works on.
    pub fn working_memory(self, memory: impl WorkingMemory) -> Self {
        self.give::<dyn WorkingMemory>(Arc::new(memory))
    }

    /// All three memories. Everything that is said is logged only with [`AgentHostBuilder::conversation_log`].
    pub fn memory(
        self,
        conversation: impl ConversationMemory,
        long_term: impl LongTermMemory,
        working: impl WorkingMemory,
    ) -> Self {
        self.conversation_memory(conversation)
            .long_term_memory(long_term)
            .working_memory(working)
    }

    /// A log of everything that is said, in all conversations. Default: none.
    pub fn conversation_log(self, log: impl ConversationLog) -> Self {
        self.give::<dyn ConversationLog>(Arc::new(log))
    }

    /// Where feedback is kept. Default: in memory.
    pub fn feedback(self, store: impl FeedbackStore) -> Self {
        self.give::<dyn FeedbackStore>(Arc::new(store))
    }

    /// Where rules are kept.
    pub fn rules(self, store: impl RulesStore) -> Self {
        self.give::<dyn RulesStore>(Arc::new(store))
    }

    /// Where skills are kept, and how they were used.
    pub fn skills(self, skills: impl SkillStore, usage: impl SkillUsageStore) -> Self {
        self.give::<dyn SkillStore>(Arc::new(skills))
            .give::<dyn SkillUsageStore>(Arc::new(usage))
    }

    /// Gives a part of type `T` to every [`Subsystem`](rockbot_core::subsystem::Subsystem) that asks for it.
    pub fn give<T: ?Sized + Send + Sync + 'static>(mut self, part: Arc<T>) -> Self {
        self.given.push(Box::new(move |needs| needs.provide::<T>(part)));
        self
    }
}
