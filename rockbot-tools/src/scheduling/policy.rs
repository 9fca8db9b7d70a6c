//! The policies for times of a task that cannot run when they are due.

use std::time::Duration;

use rockbot_core::turn::{Budget, ResultMode};
use serde::{Deserialize, Serialize};

/// The policy for times that passed while the host did not run.
///
/// In `scheduled-tasks.json` it is the member `misfire` of a task: `{"onceLate":
/// {"withinMinutes": 60}}`, `"skip"` or `{"all": {"max": 10}}`. Times that passed are found by a
/// search, so a long pause costs no more than a short one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Misfire {
    /// The last time runs late, if it passed no longer ago than `within`. The default, with an hour;
    /// with seven days for a task that runs once.
    OnceLate {
        /// Maximum delay, which the file keeps in whole minutes.
        #[serde(rename = "withinMinutes", with = "minutes")]
        within: Duration,
    },
    /// No late time runs.
    Skip,
    /// The last `max` times run, one after the other.
    All {
        /// Maximum number of times that run late, at most 100.
        max: u32,
    },
}

/// The policy for a time when the run before is not over.
///
/// In `scheduled-tasks.json` it is the member `overlap` of a task: `"skip"`, `"queueOne"` or
/// `"cancelRunning"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Overlap {
    /// The time is skipped.
    #[default]
    Skip,
    /// The time waits for the end of the run before. A single time waits; the [`Misfire`] policy
    /// makes up for times that are due meanwhile.
    QueueOne,
    /// The run before is cancelled, which does not count as a failure.
    CancelRunning,
}

/// The policies of a task, and the setting of its runs: members of the task in the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Policies {
    /// `None` means once late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) misfire: Option<Misfire>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) overlap: Overlap,
    /// Range of the delay that spreads tasks of the same time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) jitter_seconds: u32,
    /// Limits of each run; `None` means the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) budget: Option<Budget>,
    /// Form in which answers report the results of tools; `None` means the form of the model's
    /// behavior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result_mode: Option<ResultMode>,
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Whole minutes in the file.
mod minutes {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.as_secs() / 60)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Ok(Duration::from_secs(u64::deserialize(deserializer)?.saturating_mul(60)))
    }
}
