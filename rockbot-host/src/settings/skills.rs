//! The section `Skills`.

use std::path::{Path, PathBuf};

use rockbot_core::config::{Config, ConfigError};

/// What the agent learnt to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillsSettings {
    /// `BasePath`: the folder of skills. Default `skills`.
    pub base_path: PathBuf,
    /// `UsageBasePath`: the folder that tells which skills were used. Default `skill-usage`.
    pub usage_base_path: PathBuf,
}

impl SkillsSettings {
    pub(super) fn read(config: &Config, base: &Path) -> Result<Self, ConfigError> {
        let section = config.section("Skills")?;
        Ok(Self {
            base_path: section.folder("BasePath", "skills", base)?,
            usage_base_path: section.folder("UsageBasePath", "skill-usage", base)?,
        })
    }
}
