//! A server that is a child process: its environment, its process group, its standard error.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rockbot_core::ExposeSecret;
use rockbot_core::context::CancellationToken;
use rockbot_core::support::loggable;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::server::Program;

/// The variables that a process inherits.
const INHERITED: [&str; 11] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SYSTEMROOT",
    "TEMP",
    "USERPROFILE",
];

/// Number of bytes of standard error that are kept: the last ones.
const MAX_KEPT: usize = 16 * 1024;

/// Time that a process has to end after its input was closed, and again after it was told to terminate.
const GRACE: Duration = Duration::from_secs(2);

/// Time in which a process whose output is closed ends, and its last words are read.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running process, with everything that it started. Dropping it kills all of them.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    group: Group,
    end: ProcessEnd,
    reader: JoinHandle<()>,
    /// The task that owns the process: dropping that kills it.
    watcher: JoinHandle<()>,
}

/// The end of a process, and what it wrote to its standard error before.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessEnd {
    errors: KeptErrors,
    /// Fires once its standard error is read to the end.
    drained: CancellationToken,
    exited: CancellationToken,
    status: Arc<OnceLock<ExitStatus>>,
}

/// A process group, named by the id of its first process.
#[derive(Debug, Clone, Copy)]
struct Group(Option<u32>);

/// The last bytes that a process wrote to its standard error.
#[derive(Debug, Clone, Default)]
struct KeptErrors(Arc<Mutex<VecDeque<u8>>>);

impl ServerProcess {
    /// Starts the program. It is found in `PATH`; no shell is involved.
    pub(crate) fn start(program: &Program) -> std::io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut command = Command::new(&program.command);
        command
            .args(&program.arguments)
            .env_clear()
            .envs(
                INHERITED
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .envs(
                program
                    .variables
                    .iter()
                    .map(|(name, value)| (name, value.expose_secret())),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let (stdout, stdin) = (child.stdout.take(), child.stdin.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = (stdout, stdin, child.stderr.take()) else {
            return Err(std::io::Error::other("the process has no pipes"));
        };
        let group = Group(child.id());
        let end = ProcessEnd::default();
        let process = Self {
            group,
            watcher: tokio::spawn(watch(child, group, end.clone())),
            reader: tokio::spawn(end.clone().read(stderr)),
            end,
        };
        Ok((process, stdout, stdin))
    }

    /// Returns the end of the process, which may be still to come.
    pub(crate) fn end_of(&self) -> &ProcessEnd {
        &self.end
    }

    /// Waits until the process has ended, whose input is closed, and kills what is left of its group. It takes
    /// [`GRACE`] twice at most.
    pub(crate) async fn end(self) {
        if timeout(GRACE, self.end.exited.cancelled()).await.is_err() {
            self.group.signal(false);
            if timeout(GRACE, self.end.exited.cancelled()).await.is_err() {
                tracing::debug!("an MCP server did not end when told to: it is killed");
            }
        }
    }
}

/// Waits for the end of a process, and kills what is left of its group then: a program that it started may hold its output
/// open, and calls would wait for a server that is gone.
async fn watch(mut child: Child, group: Group, end: ProcessEnd) {
    if let Ok(status) = child.wait().await {
        let _ = end.status.set(status);
    }
    group.signal(true);
    end.exited.cancel();
}

impl ProcessEnd {
    /// Describes the end of the process, and the last lines that it wrote: a reason for a lost connection. A process whose
    /// output is closed has a moment to end. Returns `None` if it runs and has written nothing.
    pub(crate) async fn described(&self) -> Option<String> {
        let gone = async {
            self.exited.cancelled().await;
            self.drained.cancelled().await;
        };
        // Whatever it started may hold its standard error open.
        let _ = timeout(LAST_WORDS, gone).await;
        let lines = self.errors.last_lines();
        let ended = self.exited.is_cancelled().then(|| match self.status.get() {
            Some(status) => format!("its process ended ({status})"),
            None => "its process ended".to_owned(),
        });
        match (ended, lines.is_empty()) {
            (ended, true) => ended,
            (Some(ended), false) => Some(format!("{ended}; it wrote: {lines}")),
            (None, false) => Some(format!("it wrote: {lines}")),
        }
    }

    /// Reads the standard error to its end, and keeps the last bytes.
    async fn read(self, mut stderr: ChildStderr) {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            self.errors.push(&buffer[..read]);
        }
        self.drained.cancel();
    }
}

impl Group {
    /// Sends the whole group a signal: to terminate, or to be killed.
    fn signal(self, kill: bool) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            let group = self.0.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
            let signal = if kill { Signal::KILL } else { Signal::TERM };
            // An error means that the group is empty.
            let _ = group.map(|group| kill_process_group(group, signal));
        }
        #[cfg(not(unix))]
        let _ = (kill, self.0);
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The direct child is killed and reaped by tokio; on Unix this reaches its children, too.
        self.group.signal(true);
        self.reader.abort();
        self.watcher.abort();
    }
}

impl KeptErrors {
    /// Returns the end of the kept text, safe for a log line; empty if nothing was written.
    fn last_lines(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        drop(kept);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim();
        let start = text.floor_char_boundary(text.len().saturating_sub(300));
        loggable(&text[start..]).to_string()
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let surplus = kept.len().saturating_sub(MAX_KEPT);
        kept.drain(..surplus);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::Path;

    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;

    fn shell(script: &str) -> Program {
        Program {
            command: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            variables: [("KEY".to_owned(), "sesame".into())].into(),
            folder: None,
        }
    }

    /// Returns `true` if the process runs. One that was killed may wait for its parent to take note of it.
    fn runs(id: &str) -> bool {
        let stat = std::fs::read_to_string(Path::new("/proc").join(id).join("stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[tokio::test]
    async fn what_a_process_started_ends_with_it() {
        let (process, stdout, _stdin) = ServerProcess::start(&shell("sleep 300 & echo $!; wait")).unwrap();
        let id = BufReader::new(stdout).lines().next_line().await.unwrap().unwrap();
        assert!(runs(&id));
        drop(process);
        while runs(&id) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_process_sees_its_own_variables_and_not_the_host_s() {
        let (process, stdout, stdin) = ServerProcess::start(&shell("env; echo end")).unwrap();
        let mut lines = BufReader::new(stdout).lines();
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap().filter(|line| line != "end") {
            seen.push(line);
        }
        assert!(seen.contains(&"KEY=sesame".to_owned()), "{seen:?}");
        // Cargo sets it for this test.
        assert!(
            !seen.iter().any(|line| line.starts_with("CARGO_MANIFEST_DIR=")),
            "{seen:?}"
        );
        drop(stdin);
        process.end().await;
    }

    #[tokio::test]
    async fn the_last_of_its_errors_are_kept_however_many_there_are() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; echo done";
        let (process, stdout, stdin) = ServerProcess::start(&shell(script)).unwrap();
        let _ = BufReader::new(stdout).lines().next_line().await;
        let errors = process.end_of().errors.clone();
        while !errors.last_lines().ends_with("the end") {
            tokio::task::yield_now().await;
        }
        assert!(errors.0.lock().unwrap().len() <= MAX_KEPT);
        drop(stdin);
        process.end().await;
    }
}
