//! The section `Feedback`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use super::interval;

/// How sessions went.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedbackSettings {
    /// `BasePath`: the folder of feedback. Default `feedback`.
    pub base_path: PathBuf,
    /// `SessionIdleThreshold`: how long nothing was said until a session is judged. Default 10 minutes.
    pub session_idle_threshold: Duration,
    /// `PollInterval`: how often idle sessions are looked for. Default 5 minutes.
    pub poll_interval: Duration,
}

impl FeedbackSettings {
    pub(super) fn read(config: &Config, base: &Path) -> Result<Self, ConfigError> {
        let section = config.section("Feedback")?;
        Ok(Self {
            base_path: section.folder("BasePath", "feedback", base)?,
            session_idle_threshold: section.get_or("SessionIdleThreshold", Duration::from_secs(10 * 60))?,
            poll_interval: interval(&section, "PollInterval", Duration::from_secs(5 * 60))?,
        })
    }
}
