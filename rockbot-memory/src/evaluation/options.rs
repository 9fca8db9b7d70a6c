//! When sessions are evaluated, and how.

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::chat::ModelTier;

use crate::settings::{DEFAULT_IDLE_THRESHOLD, DEFAULT_POLL_INTERVAL, FeedbackSettings};

/// When sessions are evaluated, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationOptions {
    /// How long nothing was said until a session counts as ended. Default 10 minutes.
    pub idle_threshold: Duration,
    /// How often ended sessions are looked for. Default 5 minutes.
    pub poll_interval: Duration,
    /// The file that tells the model how to judge, below the host's data folder. It is read each time. When it is
    /// missing or blank, or there is no data folder, a text of ours is used. Default `session-evaluator.md`.
    pub directive: PathBuf,
    /// The model that judges. Default [`ModelTier::Balanced`].
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
