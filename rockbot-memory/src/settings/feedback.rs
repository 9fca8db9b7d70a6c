//! The section `Feedback`.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use crate::Retention;

/// Default of `SessionIdleThreshold`, and of the evaluation without settings.
pub(crate) const DEFAULT_IDLE_THRESHOLD: Duration = Duration::from_secs(10 * 60);

/// Default of `PollInterval`, and of the evaluation without settings.
pub(crate) const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(5 * 60);

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
    /// `Retention`: how long feedback is kept. Default 90 days.
    pub retention: Duration,
}

impl FeedbackSettings {
    /// What `config` says.
    ///
    /// # Errors
    ///
    /// Fails at the first setting that is not what it must be.
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
