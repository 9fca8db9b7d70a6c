//! The section `Memory`.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use crate::Retention;

/// Settings of long-term memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemorySettings {
    /// `BasePath`: the folder of memories. Default `memory`.
    pub base_path: PathBuf,
    /// `AgentProfile.MemoryRulesPath`: the file with the rules on what to remember and how. Default
    /// `memory-rules.md`.
    pub rules_path: PathBuf,
    /// `ArchiveRetention`: time for which an archived memory can be restored. Default 90 days.
    pub archive_retention: Duration,
}

impl MemorySettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let (section, profile) = (config.section("Memory")?, config.section("AgentProfile")?);
        Ok(Self {
            base_path: section.get_or("BasePath", "memory".into())?,
            rules_path: profile.get_or("MemoryRulesPath", "memory-rules.md".into())?,
            archive_retention: section.interval("ArchiveRetention", Retention::default().archived)?,
        })
    }
}
