//! The section `Memory`.

use std::path::{Path, PathBuf};

use rockbot_core::config::{Config, ConfigError};

/// What the agent remembers for long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemorySettings {
    /// `BasePath`: the folder of memories. Default `memory`.
    pub base_path: PathBuf,
}

impl MemorySettings {
    pub(super) fn read(config: &Config, base: &Path) -> Result<Self, ConfigError> {
        let section = config.section("Memory")?;
        Ok(Self {
            base_path: section.folder("BasePath", "memory", base)?,
        })
    }
}
