//! The check of the tokio runtime that turns are to run on.

use std::fmt;

use rockbot_core::turn::TurnError;

/// A problem of the thread that uses a host: no turn can run there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuntimeProblem {
    /// There is no tokio runtime.
    Missing,
    /// No time limit can be kept.
    NoTimers,
}

impl std::error::Error for RuntimeProblem {}

impl fmt::Display for RuntimeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&TurnError::from(*self), f)
    }
}

impl From<RuntimeProblem> for TurnError {
    fn from(problem: RuntimeProblem) -> Self {
        match problem {
            RuntimeProblem::Missing => Self::NoRuntime,
            RuntimeProblem::NoTimers => Self::NoTimers,
        }
    }
}

/// Checks that tasks and timers of tokio can be used here.
///
/// Tokio has no way to ask for timers: a timer panics in a runtime without timers. The panic is
/// caught, although the panic hook prints it.
///
/// # Errors
///
/// Returns an error outside a runtime, and on a runtime that was built without timers.
pub(crate) fn check_runtime() -> Result<(), RuntimeProblem> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(RuntimeProblem::Missing);
    }
    let timer = std::panic::catch_unwind(|| drop(tokio::time::sleep(std::time::Duration::ZERO)));
    timer.map_err(|_| RuntimeProblem::NoTimers)
}
