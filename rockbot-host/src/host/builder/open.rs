//! The profile and the stores that a host opens when it is built, on disk where it has a data
//! folder.

use std::sync::Arc;

use rockbot_core::AgentIdentity;
use rockbot_core::store::{ConversationMemory, InMemoryConversationMemory, InMemoryMediaStore, MediaStore, StoreError};
use rockbot_core::subsystem::Parts;
use rockbot_core::turn::{InMemoryTurnJournal, JournalError, TurnJournal};
use rockbot_store::file::{
    ConversationOptions, Durability, FileConversationMemory, FileMediaStore, FileTurnJournal, JournalOptions,
};

use super::AgentHostBuilder;
use crate::effects::{EffectLedger, EffectLog, EffectLogError};
use crate::media_library::MediaLibrary;
use crate::profile::{ProfileError, SystemPrompt};
use crate::routing::{RoutingLog, TierRouter};
use crate::shared_journal::SharedTurnJournal;

/// Number of outcomes of finished turns that a host without a data folder keeps, to answer
/// messages that come twice.
const MAX_OUTCOMES: usize = 1_000;

impl AgentHostBuilder {
    /// Reads the profile, or takes the instructions of an agent without a profile.
    pub(super) fn prompt(&mut self, identity: &AgentIdentity) -> Result<SystemPrompt, ProfileError> {
        if let Some((options, builder)) = self.profile.take() {
            return SystemPrompt::of_profile(options, builder, identity.clone());
        }
        let instructions = self.instructions.take();
        Ok(SystemPrompt::fixed(
            instructions.unwrap_or_else(|| default_instructions(identity)),
        ))
    }

    /// Opens the journal: the program's own, else that of a subsystem, which other agents may share,
    /// else on disk if there is a data folder.
    pub(super) fn open_journal(
        &mut self,
        identity: &AgentIdentity,
        parts: &Parts,
    ) -> Result<Arc<dyn TurnJournal>, JournalError> {
        let provided = || parts.get::<dyn TurnJournal>().filter(|_| self.journal.is_none());
        if let Some(shared) = self.shared_journal.take().or_else(provided) {
            return Ok(Arc::new(SharedTurnJournal::new(shared, &**identity.name())));
        }
        let clock = self.clock.clone();
        match (self.journal.take(), &self.data_dir) {
            (Some(journal), _) => Ok(journal),
            (None, None) => Ok(Arc::new(
                InMemoryTurnJournal::new(clock).with_max_outcomes(MAX_OUTCOMES),
            )),
            (None, Some(folder)) => {
                let options = JournalOptions::default()
                    .with_durability(self.durability)
                    .with_clock(clock);
                Ok(Arc::new(FileTurnJournal::open_with(folder.join("turns"), options)?))
            }
        }
    }

    /// Opens the conversations of a host whose subsystems provide none.
    pub(super) fn open_conversations(&self) -> Result<Arc<dyn ConversationMemory>, StoreError> {
        let settings = &self.conversations;
        let Some(data_dir) = &self.data_dir else {
            return Ok(Arc::new(InMemoryConversationMemory::with_window(settings.window)));
        };
        let options = ConversationOptions::default()
            .with_window(settings.window)
            .with_idle_timeout(settings.idle_timeout)
            .with_durability(self.durability)
            .with_clock(self.clock.clone());
        let memory = FileConversationMemory::open_with(data_dir.join(&settings.folder), options)?;
        Ok(Arc::new(memory))
    }

    /// Opens the store of images and files.
    pub(super) fn media(&mut self, parts: &Parts) -> Arc<MediaLibrary> {
        let clock = self.clock.clone();
        let given = self.media.take().or_else(|| parts.get::<dyn MediaStore>());
        let store: Arc<dyn MediaStore> = match (given, &self.data_dir) {
            (Some(store), _) => store,
            (None, None) => Arc::new(InMemoryMediaStore::new().with_clock(clock.clone())),
            (None, Some(folder)) => Arc::new(FileMediaStore::new(folder.join("media"))),
        };
        Arc::new(MediaLibrary::new(store, clock, self.media_retention))
    }

    /// Creates the router of tiers with its log, if there is a selector.
    pub(super) fn router(&mut self) -> Option<TierRouter> {
        let selector = self.selector.take()?;
        let log = self.routing_log.take().unwrap_or_else(|| match &self.data_dir {
            Some(folder) => RoutingLog::new(folder.join("tier-routing-log.jsonl")),
            None => RoutingLog::in_memory(),
        });
        Some(TierRouter::new(selector, log))
    }

    /// Opens the record of mutating calls of others, if the host runs some: on disk if it has a data
    /// folder.
    pub(super) fn open_effects(&self) -> Result<Option<Arc<EffectLedger>>, EffectLogError> {
        if !self.messages.runs_calls() {
            return Ok(None);
        }
        let log = match &self.data_dir {
            Some(folder) => {
                let is_synced = self.durability == Durability::Synced;
                Some(EffectLog::open(folder.join("effects"), is_synced)?)
            }
            None => None,
        };
        let ledger = EffectLedger::new(log, self.messages.options.effect_window, self.clock.clone())?;
        Ok(Some(Arc::new(ledger)))
    }
}

/// Returns the instructions of an agent that was given none.
fn default_instructions(identity: &AgentIdentity) -> String {
    format!(
        "You are {}, an assistant with tools. Answer the user's message briefly and correctly. Call a tool when it gives \
         you what you need, and say what failed when it fails. Never claim to have done what no tool call did; if you \
         cannot do something, say so.",
        identity.name()
    )
}
