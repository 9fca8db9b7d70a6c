//! The exit of a process, and the last bytes of its standard error.

use std::collections::VecDeque;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::support::loggable;

/// Time limit for draining the pipes of a process that has ended. A process that left the group
/// may hold them open for as long as it likes.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(500);

/// Maximum length of the standard error in a description, in bytes.
const MAX_DESCRIBED: usize = 300;

/// The exit of a [`Child`](super::Child), which may be still to come. Copies belong to the same
/// process.
#[derive(Debug, Clone)]
pub struct ProcessExit {
    stderr: Arc<Mutex<Tail>>,
    /// Fires once the standard error is read to its end.
    drained: CancellationToken,
    exited: CancellationToken,
    status: Arc<OnceLock<ExitStatus>>,
}

/// The last bytes of a stream.
#[derive(Debug)]
struct Tail {
    bytes: VecDeque<u8>,
    max: usize,
    is_cut: bool,
}

impl ProcessExit {
    pub(super) fn new(max_stderr: usize) -> Self {
        let tail = Tail {
            bytes: VecDeque::new(),
            max: max_stderr,
            is_cut: false,
        };
        Self {
            stderr: Arc::new(Mutex::new(tail)),
            drained: CancellationToken::new(),
            exited: CancellationToken::new(),
            status: Arc::default(),
        }
    }

    /// Waits until the process has ended, and returns its status; `None` if the system does not know
    /// it.
    pub async fn wait(&self) -> Option<ExitStatus> {
        self.exited.cancelled().await;
        self.status()
    }

    /// Returns the status of the process; `None` while it runs.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status.get().copied()
    }

    /// Returns the last bytes that the process has written to its standard error.
    pub fn stderr(&self) -> Vec<u8> {
        self.tail().bytes.iter().copied().collect()
    }

    /// Describes the exit of the process and the last lines that it wrote, safe for a log line: a
    /// reason for a broken pipe. Returns `None` if it runs and has written nothing.
    ///
    /// Waits up to half a second for a process that is about to end.
    pub async fn describe(&self) -> Option<String> {
        let _ = timeout(LAST_WORDS, self.ended_and_read()).await;
        let written = self.last_lines();
        let ended = self.has_exited().then(|| match self.status() {
            Some(status) => format!("its process ended ({status})"),
            None => "its process ended".to_owned(),
        });
        match (ended, written.is_empty()) {
            (ended, true) => ended,
            (Some(ended), false) => Some(format!("{ended}; it wrote: {written}")),
            (None, false) => Some(format!("it wrote: {written}")),
        }
    }

    pub(super) fn has_exited(&self) -> bool {
        self.exited.is_cancelled()
    }

    pub(super) fn is_stderr_cut(&self) -> bool {
        self.tail().is_cut
    }

    /// Waits until the process has ended, and its standard error is read to the end.
    pub(super) async fn ended_and_read(&self) {
        self.exited.cancelled().await;
        self.drained.cancelled().await;
    }

    /// Records the exit.
    pub(super) fn end(&self, status: Option<ExitStatus>) {
        if let Some(status) = status {
            // The process ends once.
            let _ = self.status.set(status);
        }
        self.exited.cancel();
    }

    /// Reads the standard error to its end, and keeps the last bytes.
    pub(super) async fn read(self, mut stderr: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            self.tail().push(&buffer[..read]);
        }
        self.drained.cancel();
    }

    fn last_lines(&self) -> String {
        let bytes = self.stderr();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        let start = text.floor_char_boundary(text.len().saturating_sub(MAX_DESCRIBED));
        loggable(&text[start..]).to_string()
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        // No code that can panic runs under the lock, so a poisoned one still guards a consistent text.
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(self.max);
        self.is_cut |= surplus > 0;
        self.bytes.drain(..surplus);
    }
}
