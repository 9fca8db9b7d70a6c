//! Options of the evaluation of sessions.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::chat::ModelTier;

use crate::settings::{DEFAULT_IDLE_THRESHOLD, DEFAULT_POLL_INTERVAL, FeedbackSettings};

/// Options of the evaluation of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvaluationOptions {
    /// Silence after which a session counts as ended. Default 10 minutes.
    pub idle_threshold: Duration,
    /// Interval between checks for ended sessions. Default 5 minutes.
    pub poll_interval: Duration,
    /// File with the instructions of the model, below the host's data folder. It is read each time.
    /// When it is missing or blank, or there is no data folder, the default text is used. Default
    /// `session-evaluator.md`.
    pub directive: PathBuf,
    /// Tier of the model. Default [`ModelTier::Balanced`].
    pub tier: ModelTier,
}

impl Default for EvaluationOptions {
    fn default() -> Self {
        Self {
            idle_threshold: DEFAULT_IDLE_THRESHOLD,
            poll_interval: DEFAULT_POLL_INTERVAL,
            directive: "session-evaluator.md".into(),
            tier: ModelTier::Balanced,
        }
    }
}

impl EvaluationOptions {
    /// Sets the silence after which a session counts as ended. Default 10 minutes.
    #[must_use]
    pub fn with_idle_threshold(mut self, idle_threshold: Duration) -> Self {
        self.idle_threshold = idle_threshold;
        self
    }

    /// Sets the interval between checks for ended sessions. Default 5 minutes.
    #[must_use]
    pub fn with_poll_interval(mut self, poll_interval: Duration) -> Self {
        self.poll_interval = poll_interval;
        self
    }

    /// Sets the file with the instructions of the model, below the host's data folder. Default
    /// `session-evaluator.md`.
    #[must_use]
    pub fn with_directive(mut self, directive: impl Into<PathBuf>) -> Self {
        self.directive = directive.into();
        self
    }

    /// Sets the tier of the model. Default [`ModelTier::Balanced`].
    #[must_use]
    pub fn with_tier(mut self, tier: ModelTier) -> Self {
        self.tier = tier;
        self
    }
}

/// Takes the idle threshold and the poll interval from the settings, and the defaults for the rest.
impl From<FeedbackSettings> for EvaluationOptions {
    fn from(settings: FeedbackSettings) -> Self {
        Self {
            idle_threshold: settings.session_idle_threshold,
            poll_interval: settings.poll_interval,
            ..Self::default()
        }
    }
}
