//! The check of the tokio runtime on which turns are to run.

/// A problem of the thread from which a host is used: no turn can run there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuntimeProblem {
    /// There is no tokio runtime.
    #[error("there is no tokio runtime here: call this within one, such as in a function with `#[tokio::main]`")]
    Missing,
    /// No time limit can be kept.
    #[error("the tokio runtime has no timers: call `enable_all()` or `enable_time()` on its builder")]
    NoTimers,
}

/// Checks that tasks and timers of tokio can be used here.
///
/// Tokio has no way to ask for timers: one panics where there are none. The panic is caught,
/// although the panic hook prints it.
///
/// # Errors
///
/// Returns an error outside a runtime, and on one that was built without timers.
pub(crate) fn check_runtime() -> Result<(), RuntimeProblem> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(RuntimeProblem::Missing);
    }
    let timer = std::panic::catch_unwind(|| drop(tokio::time::sleep(std::time::Duration::ZERO)));
    timer.map_err(|_| RuntimeProblem::NoTimers)
}
