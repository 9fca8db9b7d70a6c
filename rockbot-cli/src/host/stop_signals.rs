//! The signals that stop a service.

use rockbot::BoxError;

/// Ctrl-C and SIGTERM, each as often as it comes. Installing the handlers disables the default
/// action of both.
#[cfg(unix)]
#[derive(Debug)]
pub struct StopSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopSignals {
    /// Installs the handlers.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn install() -> Result<Self, BoxError> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Ctrl-C, as often as it comes.
#[cfg(not(unix))]
#[derive(Debug)]
pub struct StopSignals;

#[cfg(not(unix))]
impl StopSignals {
    /// Installs the handlers.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    pub fn install() -> Result<Self, BoxError> {
        Ok(Self)
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
