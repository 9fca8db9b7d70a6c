//! The section `Feedback`.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use crate::Retention;

/// Default of `SessionIdleThreshold`, and of the evaluation without settings.
pub(crate) const DEFAULT_IDLE_THRESHOLD: Duration = Duration::from_secs(10 * 60);

/// Default of `PollInterval`, and of the evaluation without settings.
pub(crate) const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Settings of feedback and of the evaluation of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedbackSettings {
    /// `BasePath`: the folder of feedback. Default `feedback`.
    pub base_path: PathBuf,
    /// `SessionIdleThreshold`: silence after which a session is evaluated. Default 10 minutes.
    pub session_idle_threshold: Duration,
    /// `PollInterval`: interval between checks for ended sessions. Default 5 minutes.
    pub poll_interval: Duration,
    /// `Retention`: retention period of feedback. Default 90 days.
    pub retention: Duration,
}

impl FeedbackSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("Feedback")?;
        Ok(Self {
            base_path: section.get_or("BasePath", "feedback".into())?,
            session_idle_threshold: section.get_or("SessionIdleThreshold", DEFAULT_IDLE_THRESHOLD)?,
            poll_interval: section.interval("PollInterval", DEFAULT_POLL_INTERVAL)?,
            retention: section.interval("Retention", Retention::default().feedback)?,
        })
    }
}
