//! The section `Memory`.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use crate::Retention;

/// What the agent remembers for long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemorySettings {
    /// `BasePath`: the folder of memories. Default `memory`.
    pub base_path: PathBuf,
    /// `AgentProfile.MemoryRulesPath`: the file that says what is worth remembering, and how. Default `memory-rules.md`.
    pub rules_path: PathBuf,
    /// `ArchiveRetention`: how long a memory can be brought back after it was archived. Default 90 days.
    pub archive_retention: Duration,
}

impl MemorySettings {
    /// What `config` says.
    ///
    /// # Errors
    ///
    /// Fails at the first setting that is not what it must be.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let (section, profile) = (config.section("Memory")?, config.section("AgentProfile")?);
        Ok(Self {
            base_path: section.get_or("BasePath", "memory".into())?,
            rules_path: profile.get_or("MemoryRulesPath", "memory-rules.md".into())?,
            archive_retention: section.interval("ArchiveRetention", Retention::default().archived)?,
        })
    }
}
