//! The section `Skills`.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use crate::Retention;

/// What the agent learnt to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillsSettings {
    /// `BasePath`: the folder of skills. Default `skills`.
    pub base_path: PathBuf,
    /// `UsageBasePath`: the folder that tells which skills were used. Default `skill-usage`.
    pub usage_base_path: PathBuf,
    /// `UsageRetention`: how long it is kept which skills were used. Default 180 days.
    pub usage_retention: Duration,
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
            usage_retention: section.interval("UsageRetention", Retention::default().skill_usage)?,
        })
    }
}
