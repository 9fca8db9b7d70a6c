//! The section `ToolServices` of a configuration.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

/// Settings of [`ToolServices`](super::ToolServices), which reads them while the host is built.
///
/// ```
/// use std::path::Path;
/// use rockbot_core::config::Config;
/// use rockbot_remote::tool_services::ToolServiceSettings;
///
/// let config = Config::new().with_text("agent.toml", "[ToolServices]\nFolder = \"descriptors\"")?;
/// let settings = ToolServiceSettings::from_config(&config)?;
/// assert_eq!(settings.folder.as_deref(), Some(Path::new("descriptors")));
/// # Ok::<_, rockbot_core::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolServiceSettings {
    /// `Folder`: the folder of descriptors; a relative path is below the host's data folder. Default
    /// `None`.
    pub folder: Option<PathBuf>,
    /// `PollInterval`: interval between two looks at the files. Default 5 seconds.
    pub poll_interval: Duration,
    /// `Announced`: `true` if services may announce tools on the bus. Default `false`.
    pub announced: bool,
    /// `TimeLimit`: maximum time of a call. Default 30 minutes.
    pub time_limit: Duration,
    /// `MessageTimeLimit`: maximum time until the first message of a reply, and between two of them.
    /// Default 10 minutes.
    pub message_time_limit: Duration,
    /// `MaxResultBytes`: maximum size of a whole result, in bytes. Default 1 MiB.
    pub max_result_bytes: usize,
}

impl ToolServiceSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("ToolServices")?;
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        Ok(Self {
            folder: section.get("Folder")?,
            poll_interval: section.interval("PollInterval", Duration::from_secs(5))?,
            announced: section.get_or("Announced", false)?,
            time_limit: section.interval("TimeLimit", minutes(30))?,
            message_time_limit: section.interval("MessageTimeLimit", minutes(10))?,
            max_result_bytes: section.get_or("MaxResultBytes", 1024 * 1024)?,
        })
    }
}
