//! How a program is started, and the output of a program that ran to its end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::future::join;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::child::Child;
use super::exit::LAST_WORDS;
use crate::support::run_until_stopped;
use crate::{ExposeSecret, Secret};

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

/// The default of [`Command::max_stdout`].
const MAX_STDOUT: usize = 1 << 20;

/// The default of [`Command::max_stderr`].
const MAX_STDERR: usize = 16 << 10;

/// A program to start, with its arguments and its environment.
///
/// The program is found in `PATH`, and no shell reads the arguments. The process gets a few
/// harmless variables of this process (`PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `LC_ALL`, `TZ`,
/// `TMPDIR`, and their like on Windows) and the variables of [`env`](Self::env): keys of models
/// and other secrets of this process stay here.
///
/// ```
/// # #[cfg(unix)]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// use std::time::Duration;
/// use rockbot_core::process::Command;
///
/// let script = Command::new("sh")
///     .args(["-c", "read name; echo \"$GREETING $name\""])
///     .env("GREETING", "Hello")
///     .input("Ada\n");
/// let output = script.output(Duration::from_secs(10)).await?;
/// assert!(output.is_success());
/// assert_eq!(output.stdout, b"Hello Ada\n");
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    variables: BTreeMap<OsString, Secret>,
    folder: Option<PathBuf>,
    user: Option<u32>,
    input: Vec<u8>,
    max_stdout: usize,
    max_stderr: usize,
}

/// The output of a program that [`Command::output`] ran.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// Status of the process; `None` if it was killed at its time limit.
    pub status: Option<ExitStatus>,
    /// First bytes of the standard output, up to [`Command::max_stdout`].
    pub stdout: Vec<u8>,
    /// Last bytes of the standard error, up to [`Command::max_stderr`].
    pub stderr: Vec<u8>,
    /// `true` if the process wrote more than is kept.
    pub is_truncated: bool,
}

impl Output {
    /// Returns `true` if the process ended in time, with the status of success.
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

impl Command {
    /// Creates the command of `program`, which is a path or a name in `PATH`, without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            variables: BTreeMap::new(),
            folder: None,
            user: None,
            input: Vec::new(),
            max_stdout: MAX_STDOUT,
            max_stderr: MAX_STDERR,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment, in place of an inherited variable of this name.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<Secret>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the current folder of the process. Default: the current folder of this process.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the user that the process runs as, by number, with the group of the same number and no
    /// others. Only a process of root can start a process of another user. Default: the user of
    /// this process; on systems other than Unix always.
    #[must_use]
    pub fn user(mut self, id: u32) -> Self {
        self.user = Some(id);
        self
    }

    /// Sets what [`output`](Self::output) writes to the standard input before it closes it. Default
    /// empty.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets the maximum length of the standard output that [`output`](Self::output) keeps, in
    /// bytes. It keeps the first bytes, and reads and drops the rest, so that the process goes on.
    /// Default 1 MiB.
    #[must_use]
    pub fn max_stdout(mut self, bytes: usize) -> Self {
        self.max_stdout = bytes;
        self
    }

    /// Sets the maximum length of the standard error that is kept, in bytes. The last bytes are
    /// kept. Default 16 KiB.
    #[must_use]
    pub fn max_stderr(mut self, bytes: usize) -> Self {
        self.max_stderr = bytes;
        self
    }

    /// Starts the program.
    ///
    /// # Errors
    ///
    /// Returns an error if the program is not found or cannot be started.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with I/O and time.
    pub fn spawn(&self) -> io::Result<Child> {
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        let own = self.variables.iter();
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(inherited)
            .envs(own.map(|(name, value)| (name, value.expose_secret())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(unix)]
        if let Some(id) = self.user {
            // The standard library leaves the other groups of root in the same step.
            command.gid(id).uid(id);
        }
        Child::new(command.spawn()?, self.max_stderr)
    }

    /// Runs the program to its end, and returns its output. A program that runs longer than `limit`
    /// is killed, with everything that it started.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future kills the program in the same way.
    ///
    /// # Errors
    ///
    /// Returns an error if the program is not found or cannot be started.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with I/O and time.
    pub async fn output(&self, limit: Duration) -> io::Result<Output> {
        self.output_heard(limit, |_| ()).await
    }

    /// Runs the program as [`output`](Self::output) does, and calls `hear` with each part of the
    /// standard output that is kept, as soon as it is read.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future kills the program with everything that it started.
    ///
    /// # Errors
    ///
    /// Returns an error if the program is not found or cannot be started.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with I/O and time.
    pub async fn output_heard(&self, limit: Duration, hear: impl FnMut(&[u8]) + Send) -> io::Result<Output> {
        let mut child = self.spawn()?;
        let exit = child.exit().clone();
        let mut kept = Kept::new(self.max_stdout);
        let stdin = child.take_stdin();
        let stdout = child.take_stdout();
        let writing = async {
            if let Some(mut stdin) = stdin {
                // Fails when the process does not read its input.
                let _ = stdin.write_all(&self.input).await;
            }
        };
        let reading = async {
            if let Some(stdout) = stdout {
                kept.read(stdout, hear).await;
            }
        };
        let running = async {
            let is_over = async {
                exit.wait().await;
                sleep(LAST_WORDS).await;
            };
            let streams = join(join(writing, reading), exit.ended_and_read());
            // A process that left the group may hold the pipes open: the output is all that was
            // read by then.
            let _ = run_until_stopped(streams, is_over).await;
        };
        let is_in_time = timeout(limit, running).await.is_ok();
        if !is_in_time {
            child.kill();
            // The system may need long to kill a process that waits for a device.
            let _ = timeout(LAST_WORDS, exit.ended_and_read()).await;
        }
        Ok(Output {
            status: exit.status().filter(|_| is_in_time),
            stdout: kept.bytes,
            stderr: exit.stderr(),
            is_truncated: kept.is_cut || exit.is_stderr_cut(),
        })
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("variables", &self.variables)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// The first bytes of a stream.
struct Kept {
    bytes: Vec<u8>,
    max: usize,
    is_cut: bool,
}

impl Kept {
    fn new(max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            max,
            is_cut: false,
        }
    }

    /// Reads a stream to its end.
    async fn read(&mut self, mut stream: impl AsyncRead + Unpin, mut hear: impl FnMut(&[u8])) {
        let mut buffer = [0; 8192];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            let fits = read.min(self.max - self.bytes.len());
            self.bytes.extend_from_slice(&buffer[..fits]);
            self.is_cut |= fits < read;
            if fits > 0 {
                hear(&buffer[..fits]);
            }
        }
    }
}
