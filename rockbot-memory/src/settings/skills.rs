//! The section `Skills`.

use std::path::PathBuf;

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
    /// What `config` says.
    ///
    /// # Errors
    ///
    /// Fails at the first setting that is not what it must be.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("Skills")?;
        Ok(Self {
            base_path: section.get_or("BasePath", "skills".into())?,
            usage_base_path: section.get_or("UsageBasePath", "skill-usage".into())?,
        })
    }
}
