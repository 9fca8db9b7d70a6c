//! The runner of `monty`, a Python interpreter in Rust that gives scripts no rights of the system:
//! for machines that have no namespaces, such as most containers.
//!
//! `monty` runs as a program of its own, one process for each script. A folder that is removed with
//! the run holds the script and its input, which the interpreter reads through a mount. The shell
//! that starts it sets the limits of the system, and removes the folder if the host is gone by then.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rockbot_core::config::Section;
use rockbot_core::process::Command;
use rockbot_core::{BoxError, CallContext};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::guarantees::Guarantees;
use super::local::{MAX_STDERR, MAX_STDOUT, captured, memory, reporter};
use super::runner::{Script, ScriptError, ScriptOutput, ScriptRunner};
use super::system::{UNPRIVILEGED, find, is_root};

/// The guide of the tool.
const GUIDE: &str = include_str!("guides/monty.md");

/// Default of the setting `MontyProgram`.
const PROGRAM: &str = "monty";

/// Becomes the script. The runner removes the second line from tracebacks.
const MAIN: &str = "ROCKBOT_INPUT = open('/script/input', 'rb').read().decode()\n\
    exec(open('/script/source', 'rb').read().decode())\n";

/// Place of the script and its input in the interpreter.
const SCRIPT: &str = "/script";

/// Starts the interpreter: the folder, CPU time in seconds, memory in KiB, and the command. The
/// interpreter writes no file of the system. A system without a limit of memory leaves that limit
/// to the interpreter.
const LAUNCHER: &str = "folder=$1; ulimit -c 0; ulimit -f 0; ulimit -n 64; ulimit -t \"$2\"; ulimit -v \"$3\" 2>/dev/null\n\
    shift 3; \"$@\" </dev/null; code=$?; rm -rf -- \"$folder\"; exit $code";

/// Memory that the interpreter takes for itself, in bytes.
const OWN_MEMORY: u64 = 256 << 20;

/// Maximum length of all temporary files of a script, in bytes.
const MAX_TEMPORARY: u64 = 32 << 20;

/// Maximum number of waits and of accesses to files.
const MAX_SUSPENSIONS: &str = "100000";

/// Exit codes of the shell and of the interpreter for a command that cannot be started.
const NOT_STARTED: [Option<i32>; 3] = [Some(2), Some(126), Some(127)];

/// A runner of scripts in a part of Python, without an isolation by the system.
#[derive(Debug)]
pub(super) struct MontyScriptRunner {
    /// Name or path of the interpreter.
    pub(super) program: String,
    /// Memory of a script, in bytes.
    pub(super) memory: u64,
}

#[async_trait]
impl ScriptRunner for MontyScriptRunner {
    fn name(&self) -> &str {
        "monty"
    }

    fn guarantees(&self) -> Guarantees {
        Guarantees::ALL
    }

    fn subset(&self) -> Option<&str> {
        Some(GUIDE)
    }

    async fn run(&self, script: Script, cx: &CallContext) -> Result<ScriptOutput, ScriptError> {
        if !script.packages.is_empty() {
            let advice = "`monty` has no packages: use the modules that the guide lists, and leave out `pip_packages`";
            return Err(ScriptError::Refused(advice.to_owned()));
        }
        let program = self.program()?;
        let timeout = script.timeout;
        let folder = spawn_blocking(move || lay_out(&script)).await.map_err(io::Error::other);
        let folder = folder.flatten().map_err(|error| unavailable(&error))?;
        let command = self.command(&program, folder.path(), timeout.as_secs());
        let output = command.output_heard(timeout, reporter(cx)).await;
        let mut output = captured(&output.map_err(|error| unavailable(&error))?);
        if NOT_STARTED.contains(&output.exit_code) {
            return Err(ScriptError::Unavailable(format!("monty: {}", output.stderr.trim())));
        }
        output.stderr = words(&output.stderr);
        Ok(output)
    }
}

impl MontyScriptRunner {
    /// Reads the settings `MontyProgram` and `MemoryMegabytes`.
    pub(super) fn read(section: &Section<'_>) -> Result<Self, BoxError> {
        Ok(Self {
            program: section.get_or("MontyProgram", PROGRAM.to_owned())?,
            memory: memory(section)?,
        })
    }

    /// Returns the path of the interpreter.
    fn program(&self) -> Result<PathBuf, ScriptError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        find(&self.program, &path).ok_or_else(|| {
            ScriptError::Unavailable(format!(
                "the program `{}` is not installed: install the Python package `pydantic-monty-runtime`",
                self.program
            ))
        })
    }

    /// Returns the command of a script. If its host is killed, the script ends soon after its time.
    fn command(&self, program: &Path, folder: &Path, seconds: u64) -> Command {
        let mount = |name: &str, place: &str, mode: &str| {
            let mut mount = OsString::from(folder.join(name));
            mount.push(format!("::{place}::{mode}"));
            mount
        };
        let mut command = Command::new("sh").args(["-c", LAUNCHER, "sh"]).arg(folder);
        if is_root() {
            command = command.user(UNPRIVILEGED);
        }
        let seconds = (seconds + 1).to_string();
        command
            .args([&seconds, &((self.memory + OWN_MEMORY) >> 10).to_string()])
            .arg(program)
            .args(["--max-memory", &self.memory.to_string()])
            .args(["--max-feed-duration", &seconds, "--max-total-sleep", &seconds])
            .args(["--max-sleep", "inf", "--max-suspensions", MAX_SUSPENSIONS])
            .arg("--mount")
            .arg(mount("script", SCRIPT, "ro"))
            .arg("--mount")
            .arg(mount("tmp", "/tmp", &format!("overlay::{MAX_TEMPORARY}")))
            .args(["--cwd", "/tmp", "main.py"])
            .current_dir(folder)
            .max_stdout(MAX_STDOUT)
            .max_stderr(MAX_STDERR)
    }
}

/// Creates the folder of a run, which the user of the interpreter alone may read.
fn lay_out(script: &Script) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("rockbot-script-").tempdir()?;
    let path = |name: &str| folder.path().join(name);
    for name in ["script", "tmp"] {
        DirBuilder::new().mode(0o755).create(path(name))?;
    }
    let files = [
        ("main.py", MAIN),
        ("script/source", &script.source),
        ("script/input", &script.input),
    ];
    for (name, text) in files {
        fs::write(path(name), text)?;
    }
    if is_root() {
        let names = files.iter().map(|(name, _)| *name).chain(["script", "tmp", ""]);
        for name in names {
            chown(path(name), Some(UNPRIVILEGED), Some(UNPRIVILEGED))?;
        }
    }
    Ok(folder)
}

/// Returns the standard error as Python writes it: without the status line of the interpreter and
/// the frame of `main.py`.
fn words(stderr: &str) -> String {
    let Some((before, error)) = stderr.rsplit_once(" ❯ error: ") else {
        // The value of `main.py`. A script that was killed has no status.
        return stderr.strip_suffix(" ❯ None\n").map_or(stderr, without_time).to_owned();
    };
    let before = without_time(before);
    let (first, frames) = error.split_once('\n').unwrap_or((error, ""));
    // The lines of the frame: its place, its source, and the marks below the source.
    let frames = match frames.strip_prefix("  File \"main.py\", line 2, ") {
        Some(own) => own.splitn(4, '\n').nth(3).unwrap_or_default(),
        None => frames,
    };
    let frames = frames
        .replace("  File \"<string>\", line ", "  File \"script.py\", line ")
        .replace(" (<string>, line ", " (script.py, line ");
    format!("{before}{first}\n{frames}")
}

/// Removes the time of a run, such as `1.25ms`, from the end of a text.
fn without_time(text: &str) -> &str {
    let number = ["ns", "μs", "µs", "ms", "s"]
        .iter()
        .find_map(|unit| text.strip_suffix(unit))
        .unwrap_or(text);
    number.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn unavailable(error: &io::Error) -> ScriptError {
    ScriptError::Unavailable(format!("monty: the process cannot be started: {error}"))
}
