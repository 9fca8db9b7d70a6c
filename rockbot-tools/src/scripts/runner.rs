//! The contract of script runners.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;

use super::guarantees::Guarantees;
use super::package::Package;

/// A runner of Python scripts, on this machine or elsewhere.
///
/// A runner declares its [guarantees](Guarantees) for every script, also for a hostile one; the
/// subsystem [`Scripts`](super::Scripts) tries each declared guarantee before it offers the tool.
///
/// The contract with scripts: the variable `ROCKBOT_INPUT` holds the input, empty if there is
/// none, and the standard input has it, too. An input that is longer than 64 KiB or has a NUL
/// stands on the standard input alone, and the variable is missing. The script is `__main__`, and
/// prints its result.
#[async_trait]
pub trait ScriptRunner: fmt::Debug + Send + Sync + 'static {
    /// Returns the name of the runner, for answers and logs.
    fn name(&self) -> &str;

    /// Returns the guarantees that the runner declares.
    fn guarantees(&self) -> Guarantees;

    /// Runs a script to its end, or kills it at its time limit. Parts of the output may be reported
    /// as [progress](CallContext::progress).
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future kills the script in the same way, as far as [`Guarantees::cleanup`] is
    /// declared.
    ///
    /// # Errors
    ///
    /// Returns an error if the script could not be run. A script that fails is no error: see
    /// [`ScriptOutput`].
    async fn run(&self, script: Script, cx: &CallContext) -> Result<ScriptOutput, ScriptError>;

    /// Returns `true` if a script finds files of earlier scripts of its session in `/work`. Then calls
    /// are mutating. Default `false`.
    fn keeps_files(&self) -> bool {
        false
    }

    /// Returns the guide of the tool if the runner knows only a part of Python 3 and its standard
    /// library: which part, and where a script finds its input. Such a runner has the input in the
    /// global variable `ROCKBOT_INPUT`, of any size. Default `None`, for all of Python.
    fn subset(&self) -> Option<&str> {
        None
    }
}

/// A script to run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Script {
    /// Source in Python.
    pub source: String,
    /// Input of the script. Empty by default.
    pub input: String,
    /// Time after which the script is killed, without the time that its packages take. Default 30
    /// seconds.
    pub timeout: Duration,
    /// Packages that the script imports.
    pub packages: Vec<Package>,
}

impl Script {
    /// Creates a script without input and packages.
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            input: String::new(),
            timeout: Duration::from_secs(30),
            packages: Vec::new(),
        }
    }

    /// Sets the input.
    #[must_use]
    pub fn with_input(mut self, input: impl Into<String>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets the time after which the script is killed.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the packages that the script imports.
    #[must_use]
    pub fn with_packages(mut self, packages: impl IntoIterator<Item = Package>) -> Self {
        self.packages = packages.into_iter().collect();
        self
    }
}

/// The output of a script that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptOutput {
    /// First part of the standard output, with a note if the rest was cut off. Bytes that are not
    /// UTF-8 are replaced.
    pub stdout: String,
    /// Last part of the standard error.
    pub stderr: String,
    /// Exit code, 128 + n after signal n; `None` if the script was killed at its time limit.
    pub exit_code: Option<i32>,
    /// Guarantees that the program which ran the script declares; `None`, the default, for the
    /// guarantees of the runner.
    pub guarantees: Option<Guarantees>,
    /// Files that the script wrote to the folder `/work` of its session, the latest first. Empty by
    /// default.
    pub files: Vec<WorkFile>,
}

/// A file in the folder `/work` of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkFile {
    /// Path below `/work`, as the script chose it.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
}

impl WorkFile {
    /// Creates the description of a file.
    pub fn new(path: impl Into<String>, bytes: u64) -> Self {
        let path = path.into();
        Self { path, bytes }
    }
}

impl ScriptOutput {
    /// Creates the output of a script that ended by itself.
    pub fn new(exit_code: i32, stdout: impl Into<String>, stderr: impl Into<String>) -> Self {
        Self {
            stdout: stdout.into(),
            stderr: stderr.into(),
            exit_code: Some(exit_code),
            guarantees: None,
            files: Vec::new(),
        }
    }

    /// Sets the files that the script wrote to the folder of its session.
    #[must_use]
    pub fn with_files(mut self, files: impl IntoIterator<Item = WorkFile>) -> Self {
        self.files = files.into_iter().collect();
        self
    }

    /// Creates the output of a script that was killed at its time limit.
    pub fn timed_out(stdout: impl Into<String>, stderr: impl Into<String>) -> Self {
        Self {
            exit_code: None,
            ..Self::new(0, stdout, stderr)
        }
    }
}

/// An error for a script that could not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The runner does not work here.
    #[error("scripts cannot run here: {0}")]
    Unavailable(String),
    /// The packages of the script could not be installed.
    #[error("the packages could not be installed: {0}")]
    Packages(String),
    /// The runner does not run this script: it is too large, or asks for more than the runner
    /// gives.
    #[error("the script was refused: {0}")]
    Refused(String),
}

impl ScriptError {
    /// Returns `true` if the same script may run later: a package index may be out of reach for a
    /// while.
    pub fn retry_helps(&self) -> bool {
        matches!(self, Self::Packages(_))
    }

    /// Returns the reason alone.
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Unavailable(reason) | Self::Packages(reason) | Self::Refused(reason) => reason,
        }
    }
}
