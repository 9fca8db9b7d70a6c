//! The section `Skills`.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use crate::Retention;

/// Settings of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillsSettings {
    /// `BasePath`: the folder of skills. Default `skills`.
    pub base_path: PathBuf,
    /// `UsageBasePath`: the folder of the usage log of skills. Default `skill-usage`.
    pub usage_base_path: PathBuf,
    /// `UsageRetention`: retention period of the usage log. Default 180 days.
    pub usage_retention: Duration,
}

impl SkillsSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("Skills")?;
        Ok(Self {
            base_path: section.get_or("BasePath", "skills".into())?,
            usage_base_path: section.get_or("UsageBasePath", "skill-usage".into())?,
            usage_retention: section.interval("UsageRetention", Retention::default().skill_usage)?,
        })
    }
}
