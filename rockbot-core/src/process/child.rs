//! A process that runs.

use std::io;
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::exit::ProcessExit;
use super::group::Group;

/// Time that a process has to end after its input was closed, and again after it was told to
/// terminate.
const GRACE: Duration = Duration::from_secs(2);

/// A running process, with everything that it started. Dropping it kills all of them.
///
/// Its standard input and output are pipes, which the caller [takes](Self::take_stdin). A process
/// whose output is not read blocks when the pipe is full. Its standard error is read in the
/// background: see [`ProcessExit::stderr`].
///
/// ```
/// # #[cfg(unix)]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use rockbot_core::process::Command;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let mut child = Command::new("cat").spawn()?;
/// if let (Some(mut stdin), Some(mut stdout)) = (child.take_stdin(), child.take_stdout()) {
///     stdin.write_all(b"purr").await?;
///     drop(stdin);
///     let mut echoed = String::new();
///     stdout.read_to_string(&mut echoed).await?;
///     assert_eq!(echoed, "purr");
/// }
/// assert!(child.stop().await);
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct Child {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    group: Group,
    exit: ProcessExit,
    killed: CancellationToken,
    reader: JoinHandle<()>,
    /// The task that owns the process: dropping that kills it.
    watcher: JoinHandle<()>,
}

impl Child {
    /// Takes over a process that leads a group, with pipes to all three of its streams.
    pub(super) fn new(mut process: tokio::process::Child, max_stderr: usize) -> io::Result<Self> {
        let group = Group(process.id());
        let Some(stderr) = process.stderr.take() else {
            return Err(io::Error::other("the process has no pipes"));
        };
        let exit = ProcessExit::new(max_stderr);
        let killed = CancellationToken::new();
        Ok(Self {
            stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            group,
            reader: tokio::spawn(exit.clone().read(stderr)),
            watcher: tokio::spawn(watch(process, group, exit.clone(), killed.clone())),
            exit,
            killed,
        })
    }

    /// Takes the pipe to the standard input; `None` if it is taken. Dropping the pipe closes it.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Takes the pipe from the standard output; `None` if it is taken.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Returns the exit of the process, which may be still to come.
    pub fn exit(&self) -> &ProcessExit {
        &self.exit
    }

    /// Kills the process and everything that it started. [`ProcessExit::wait`] waits for its end.
    pub fn kill(&self) {
        // The id of a group that has ended may belong to another group by now.
        if !self.exit.has_exited() {
            self.group.kill();
        }
        self.killed.cancel();
    }

    /// Ends the process. Returns `false` if it had to be killed.
    ///
    /// Closes its standard input, if it is not taken, and waits 2 seconds for the end. Then the
    /// process is told to terminate, and after another 2 seconds it is killed. The rest of its
    /// group is killed in any case.
    pub async fn stop(mut self) -> bool {
        self.stdin = None;
        if timeout(GRACE, self.exit.wait()).await.is_ok() {
            return true;
        }
        self.group.terminate();
        timeout(GRACE, self.exit.wait()).await.is_ok()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The process itself is killed and reaped by tokio; on Unix this reaches its children, too.
        self.kill();
        self.reader.abort();
        self.watcher.abort();
    }
}

/// Waits for the end of a process, and then kills the rest of its group: a program that it
/// started may hold its output open, and the reader would wait for a process that is gone.
async fn watch(mut process: tokio::process::Child, group: Group, exit: ProcessExit, killed: CancellationToken) {
    let status = match killed.run_until_cancelled(process.wait()).await {
        Some(status) => status,
        None => {
            // For systems without groups. It fails if the process has ended.
            let _ = process.start_kill();
            process.wait().await
        }
    };
    group.kill();
    exit.end(status.ok());
}
