//! The section `Feedback`.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::config::{Config, ConfigError};

use crate::{EvaluationOptions, Retention};

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
        let (section, default) = (config.section("Feedback")?, EvaluationOptions::default());
        Ok(Self {
            base_path: section.get_or("BasePath", "feedback".into())?,
            session_idle_threshold: section.get_or("SessionIdleThreshold", default.idle_threshold)?,
            poll_interval: section.interval("PollInterval", default.poll_interval)?,
            retention: section.interval("Retention", Retention::default().feedback)?,
        })
    }
}

/// Judges as the file says, everything else as by default.
impl From<FeedbackSettings> for EvaluationOptions {
    fn from(settings: FeedbackSettings) -> Self {
        Self {
            idle_threshold: settings.session_idle_threshold,
            poll_interval: settings.poll_interval,
            ..Self::default()
        }
    }
}
