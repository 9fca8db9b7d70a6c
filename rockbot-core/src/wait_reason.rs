//! The reasons of waits, for the people who wait.
//!
//! Waits are reported through the call's context (`ProgressReporter::waiting`), which every layer
//! and client has: the gateway knows of a wait and nothing of turns. The host dates the end of
//! the wait by its clock, since reports cross the bus (`TurnProgress::Waiting`). Waits under a
//! second are not reported.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A reason why a turn makes no progress for a while.
///
/// ```
/// use std::time::Duration;
/// use rockbot_core::context::WaitReason;
///
/// let left = Some(Duration::from_secs(30));
/// assert_eq!(WaitReason::ModelBusy.in_words(left), "the model is busy: asking again in 30 s");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitReason {
    /// The model's server is overloaded or limits the rate of requests. It is asked again after the
    /// wait.
    ModelBusy,
    /// A request to the model failed in passing, for example because the connection was cut. It is
    /// sent again after the wait.
    ModelFailed,
    /// Other calls of the host have all permits for model calls. The call fails if the wait ends
    /// without a permit.
    Permit,
    /// Servers of tools, under these names, are still connecting. The turn goes on without them
    /// after the wait.
    Servers(Vec<String>),
}

impl WaitReason {
    /// Returns the wait in words for a person, with the time that is left, in seconds rounded up.
    pub fn in_words(&self, left: Option<Duration>) -> String {
        let (what, then) = match self {
            Self::ModelBusy => ("the model is busy".to_owned(), "asking again in"),
            Self::ModelFailed => ("a request to the model failed".to_owned(), "asking again in"),
            Self::Permit => ("other calls of the model go first".to_owned(), "waiting at most"),
            Self::Servers(names) => (
                format!("tool servers are still connecting ({})", names.join(", ")),
                "waiting at most",
            ),
        };
        match left {
            Some(left) => format!("{what}: {then} {} s", left.as_millis().div_ceil(1000)),
            None => what,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(why: &WaitReason, left_ms: Option<u64>, expected: &str) {
        assert_eq!(why.in_words(left_ms.map(Duration::from_millis)), expected);
    }

    #[test]
    fn a_wait_is_told_with_its_reason_and_the_time_left() {
        check(
            &WaitReason::ModelBusy,
            Some(29_001),
            "the model is busy: asking again in 30 s",
        );
        check(
            &WaitReason::ModelFailed,
            Some(1_000),
            "a request to the model failed: asking again in 1 s",
        );
        check(&WaitReason::Permit, None, "other calls of the model go first");
        check(
            &WaitReason::Servers(vec!["git".into(), "mail".into()]),
            Some(10_000),
            "tool servers are still connecting (git, mail): waiting at most 10 s",
        );
    }
}
