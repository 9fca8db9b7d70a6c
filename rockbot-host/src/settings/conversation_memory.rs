//! The section `ConversationMemory`.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationMemorySettings {
    /// `BasePath`: the folder of conversations. Default `conversations`.
    pub base_path: PathBuf,
    /// `MaxTurnsPerSession`: how many turns of a session are kept. Default 50.
    pub max_turns_per_session: NonZeroU32,
    /// `SessionIdleTimeout`: how long after its last turn a session is forgotten. Default 1 hour.
    pub session_idle_timeout: Duration,
}

impl ConversationMemorySettings {
    pub(super) fn read(config: &Config, base: &Path) -> Result<Self, ConfigError> {
        let section = config.section("ConversationMemory")?;
        let max_turns = NonZeroU32::new(50).expect("50 is not zero");
        Ok(Self {
            base_path: section.folder("BasePath", "conversations", base)?,
            max_turns_per_session: section.get_or("MaxTurnsPerSession", max_turns)?,
            session_idle_timeout: section.interval("SessionIdleTimeout", Duration::from_secs(3600))?,
        })
    }
}
