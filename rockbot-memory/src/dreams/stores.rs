//! The stores that dreams tend.

use std::path::PathBuf;
use std::sync::Arc;

use rockbot_core::Principal;
use rockbot_core::files::{DataFolder, FileError};
use rockbot_core::store::{
    ConversationLog, FeedbackStore, LongTermMemory, MemoryEntry, RulesStore, SkillStore, SkillUsageStore, StoreError,
    StoreErrorKind,
};
use rockbot_core::subsystem::Parts;
use rockbot_store::kit::{blocking, failed};

/// The rules of the tier selector, below the data folder.
const TIER_RULES: &str = "tier-selector.json";

/// The log of routed messages, below the data folder.
const ROUTING_LOG: &str = "tier-routing-log.jsonl";

/// Maximum size of a file beside the stores, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The stores of a host; each may be missing.
#[derive(Debug, Clone, Default)]
pub(super) struct Stores {
    pub(super) memory: Option<Arc<dyn LongTermMemory>>,
    pub(super) skills: Option<Arc<dyn SkillStore>>,
    pub(super) usage: Option<Arc<dyn SkillUsageStore>>,
    pub(super) feedback: Option<Arc<dyn FeedbackStore>>,
    pub(super) rules: Option<Arc<dyn RulesStore>>,
    pub(super) log: Option<Arc<dyn ConversationLog>>,
    pub(super) data_dir: Option<PathBuf>,
}

impl Stores {
    pub(super) fn of(parts: &Parts) -> Self {
        Self {
            memory: parts.get(),
            skills: parts.get(),
            usage: parts.get(),
            feedback: parts.get(),
            rules: parts.get(),
            log: parts.get(),
            data_dir: parts.data_dir().map(PathBuf::from),
        }
    }

    /// Returns a store that a plan needs.
    pub(super) fn required<'a, T: ?Sized>(store: &'a Option<Arc<T>>, what: &str) -> Result<&'a Arc<T>, StoreError> {
        let missing = || StoreError::new(StoreErrorKind::Invalid, format!("the host has no {what} any more"));
        store.as_ref().ok_or_else(missing)
    }

    /// Returns all memories of a principal; none without a long-term memory.
    pub(super) async fn memories(&self, who: &Principal) -> Result<Vec<Arc<MemoryEntry>>, StoreError> {
        match &self.memory {
            Some(memory) => memory.list(who).await,
            None => Ok(Vec::new()),
        }
    }

    /// Returns the text of the tier selector's rules; `None` if there is no file.
    pub(super) async fn tier_rules(&self) -> Result<Option<String>, StoreError> {
        self.file(TIER_RULES).await
    }

    /// Returns the text of the log of routed messages; empty if there is none.
    pub(super) async fn routing_log(&self) -> Result<String, StoreError> {
        Ok(self.file(ROUTING_LOG).await?.unwrap_or_default())
    }

    /// Replaces the rules of the tier selector.
    pub(super) async fn set_tier_rules(&self, text: String) -> Result<(), StoreError> {
        let missing = || StoreError::new(StoreErrorKind::Invalid, "the host has no data folder any more");
        let folder = DataFolder::unheld(self.data_dir.clone().ok_or_else(missing)?);
        blocking(move || folder.replace(TIER_RULES, text.as_bytes()).map_err(cannot)).await
    }

    async fn file(&self, name: &'static str) -> Result<Option<String>, StoreError> {
        let Some(folder) = self.data_dir.clone().map(DataFolder::unheld) else {
            return Ok(None);
        };
        let bytes = blocking(move || folder.read(name, MAX_BYTES).map_err(cannot)).await?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

fn cannot(error: FileError) -> StoreError {
    failed("a file of the data folder cannot be read or written", error)
}
