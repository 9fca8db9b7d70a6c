//! The parts of a host that its users look into. A host may lack any of them.

use std::sync::Arc;

use rockbot_core::chat::Ledger;
use rockbot_core::store::{LongTermMemory, RulesStore, SkillStore, WorkingMemory};
use rockbot_core::subsystem::Parts;
#[cfg(feature = "dreams")]
use rockbot_memory::Dreams;
#[cfg(feature = "schedules")]
use rockbot_tools::scheduling::Schedules;
#[cfg(feature = "wisps")]
use rockbot_tools::wisps::WispRuns;

use crate::error::WebError;

/// The parts of a host that its users look into.
pub(crate) struct HostParts {
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) memories: Option<Arc<dyn LongTermMemory>>,
    pub(crate) skills: Option<Arc<dyn SkillStore>>,
    pub(crate) rules: Option<Arc<dyn RulesStore>>,
    pub(crate) working: Option<Arc<dyn WorkingMemory>>,
    #[cfg(feature = "dreams")]
    pub(crate) dreams: Option<Arc<Dreams>>,
    #[cfg(feature = "schedules")]
    pub(crate) schedules: Option<Arc<Schedules>>,
    #[cfg(feature = "wisps")]
    pub(crate) wisps: Option<Arc<WispRuns>>,
}

impl HostParts {
    pub(crate) fn of(parts: &Parts) -> Self {
        Self {
            ledger: parts.get(),
            memories: parts.get(),
            skills: parts.get(),
            rules: parts.get(),
            working: parts.get(),
            #[cfg(feature = "dreams")]
            // They fail where the settings turn dreams off: dreams start before this server.
            dreams: parts.get().filter(|dreams: &Arc<Dreams>| dreams.plans().is_ok()),
            #[cfg(feature = "schedules")]
            schedules: parts.get(),
            #[cfg(feature = "wisps")]
            wisps: parts.get(),
        }
    }

    /// Returns the names of the routes whose part the host has, for a page that shows no others.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let parts = [
            ("costs", self.ledger.is_some()),
            ("memories", self.memories.is_some()),
            ("skills", self.skills.is_some()),
            ("rules", self.rules.is_some()),
            ("working-memory", self.working.is_some()),
            #[cfg(feature = "schedules")]
            ("schedules", self.schedules.is_some()),
            #[cfg(feature = "wisps")]
            ("wisps", self.wisps.is_some()),
            #[cfg(feature = "dreams")]
            ("dreams", self.dreams.is_some()),
        ];
        let there = parts.into_iter().filter(|(_, is_there)| *is_there);
        there.map(|(name, _)| name).collect()
    }
}

/// Returns a part, or the error for a host without it.
pub(crate) fn offered<'a, T: ?Sized>(part: Option<&'a Arc<T>>, what: &str) -> Result<&'a Arc<T>, WebError> {
    part.ok_or_else(|| WebError::not_found(format!("this agent has no {what}")))
}
