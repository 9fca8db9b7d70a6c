//! The runner on this machine: Python inside bubblewrap, or bare where the program asks for it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rockbot_core::config::{Config, Section};
use rockbot_core::process::{Command, Output};
use rockbot_core::{BoxError, CallContext, Secret};

use super::guarantees::Guarantees;
use super::packages::PackageCache;
use super::runner::{Script, ScriptError, ScriptOutput, ScriptRunner};
use super::system::{UNPRIVILEGED, find, is_root};
use super::work::{WORK, WorkFolder, WorkFolders};

/// Reads limits, script and input, and becomes the script.
const BOOTSTRAP: &str = include_str!("bootstrap.py");

/// Place of the packages inside the sandbox.
const PACKAGES: &str = "/packages";

/// Arguments of bubblewrap, in its order. The script's first process is the first of its
/// namespace, so that no process of bubblewrap is in its reach: that has the session keyring of
/// the host. `--die-with-parent` means the thread that starts it, which lives as long as its
/// runtime.
const WALLS: &str = "--unshare-user --unshare-all --disable-userns --cap-drop ALL --die-with-parent --new-session --as-pid-1 \
    --clearenv --hostname sandbox --uid 65534 --gid 65534 --setenv HOME /tmp --setenv LANG C.UTF-8 --ro-bind /usr /usr --proc \
    /proc --ro-bind /proc/sys /proc/sys --dev /dev";

/// Programs that scripts find, and the interpreter of the sandbox.
const SANDBOX_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Memory of temporary files in a sandbox, in bytes.
const MAX_TEMPORARY: u64 = 64 << 20;

/// Memory of the shared memory of a sandbox, in bytes.
const MAX_SHARED: u64 = 16 << 20;

/// Maximum size of a file, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Maximum number of processes and threads in a sandbox.
const MAX_PROCESSES: i64 = 64;

/// Maximum length of the standard output that is kept, in bytes.
pub(super) const MAX_STDOUT: usize = 256 << 10;

/// Maximum length of the standard error that is kept, in bytes.
pub(super) const MAX_STDERR: usize = 16 << 10;

/// Maximum length of a progress report, in characters.
const MAX_REPORT: usize = 200;

/// Minimum time between two progress reports.
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// Default memory of a process, in MiB.
const MEMORY_MEGABYTES: u64 = 512;

/// Folder of packages below the data folder.
const PACKAGE_FOLDER: &str = "script-packages";

/// Folder of packages of a host that root runs: scripts run as another user, who reads no data
/// folder.
pub(super) const PACKAGES_OF_ROOT: &str = "/var/cache/rockbot/script-packages";

/// A runner on this machine, in a sandbox of bubblewrap.
///
/// [`Scripts::new`](super::Scripts::new) has it. A program that runs the scripts of others makes
/// one itself: `rockbot-scripts-manager` does.
#[derive(Debug)]
pub struct LocalScriptRunner {
    pub(super) isolation: Isolation,
    /// Memory of one process, and of all of a script, in bytes.
    pub(super) memory: u64,
    pub(super) packages: PackageCache,
    /// The folders that sessions keep; `None` if they keep none.
    pub(super) work: Option<WorkFolders>,
}

/// The walls around a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isolation {
    Bubblewrap,
    Nothing,
}

#[async_trait]
impl ScriptRunner for LocalScriptRunner {
    fn name(&self) -> &str {
        match self.isolation {
            Isolation::Bubblewrap => "bubblewrap",
            Isolation::Nothing => "unsafe-local",
        }
    }

    fn guarantees(&self) -> Guarantees {
        match self.isolation {
            Isolation::Bubblewrap => Guarantees::ALL,
            Isolation::Nothing => Guarantees::NONE,
        }
    }

    fn keeps_files(&self) -> bool {
        self.work().is_some()
    }

    async fn run(&self, script: Script, cx: &CallContext) -> Result<ScriptOutput, ScriptError> {
        let python = self.python()?;
        let packages = self.packages.folder_of(&script.packages, &python).await?;
        // Of a bare script: removed when the run ends.
        let folder = match self.isolation {
            Isolation::Bubblewrap => None,
            Isolation::Nothing => Some(tempfile::tempdir().map_err(|error| unavailable(&error))?),
        };
        let work = match self.work() {
            Some(folders) => Some(folders.open(cx).await?),
            None => None,
        };
        let command = match &folder {
            None => sandboxed(&python, packages.as_deref(), work.as_ref().map(WorkFolder::path)),
            Some(folder) => bare(&python, packages.as_deref()).current_dir(folder.path()),
        };
        let inside = match (&folder, packages) {
            (None, Some(_)) => Some(PathBuf::from(PACKAGES)),
            (_, packages) => packages,
        };
        let command = command.args(self.arguments(&script, inside)).input(input(&script));
        let command = command.max_stdout(MAX_STDOUT).max_stderr(MAX_STDERR);
        let running = command.output_heard(script.timeout, reporter(cx));
        let Some(work) = work else {
            return result(&running.await.map_err(|error| unavailable(&error))?);
        };
        let output = tokio::select! {
            output = running => output.map_err(|error| unavailable(&error))?,
            // The script ends with the future that runs it.
            () = work.is_full() => return Err(work.withdraw().await),
        };
        Ok(result(&output)?.with_files(work.written().await?))
    }
}

impl LocalScriptRunner {
    /// Creates the runner with the settings `MemoryMegabytes`, `PackageIndex` and `PackageFolder` of
    /// the section `Scripts`, see [`Scripts`](super::Scripts). `data` is the data folder of the
    /// program, if it has one. Scripts keep no files: they may come from many agents, whose sessions
    /// this runner does not know.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config, data: Option<&Path>) -> Result<Self, BoxError> {
        Self::read(config, data, Isolation::Bubblewrap)
    }

    /// Creates the runner with these walls.
    pub(super) fn read(config: &Config, data: Option<&Path>, isolation: Isolation) -> Result<Self, BoxError> {
        let section = config.section("Scripts")?;
        let packages = PackageCache {
            index: section.get::<Secret>("PackageIndex")?,
            folder: package_folder(section.get::<PathBuf>("PackageFolder")?, data),
        };
        Ok(Self {
            isolation,
            memory: memory(&section)?,
            packages,
            work: None,
        })
    }

    /// Returns the folders of sessions, which a sandbox alone has a place for.
    fn work(&self) -> Option<&WorkFolders> {
        self.work.as_ref().filter(|_| self.isolation == Isolation::Bubblewrap)
    }

    /// Returns the path of the interpreter.
    fn python(&self) -> Result<PathBuf, ScriptError> {
        let path = match self.isolation {
            Isolation::Bubblewrap => OsString::from(SANDBOX_PATH),
            Isolation::Nothing => std::env::var_os("PATH").unwrap_or_default(),
        };
        find("python3", &path).ok_or_else(|| {
            let path = path.to_string_lossy();
            ScriptError::Unavailable(format!("there is no `python3` in `{path}`: install Python"))
        })
    }

    /// Returns the arguments of the interpreter.
    fn arguments(&self, script: &Script, packages: Option<PathBuf>) -> Vec<OsString> {
        // Of all threads of a process together.
        let cpu = 2 * script.timeout.as_secs() + 1;
        let processes = match self.isolation {
            Isolation::Bubblewrap => MAX_PROCESSES,
            // They are counted with all others of the user.
            Isolation::Nothing => -1,
        };
        let numbers = [
            script.source.len() as u64,
            script.input.len() as u64,
            self.memory,
            cpu,
            MAX_FILE,
        ];
        let fixed = ["-I", "-X", "utf8", "-c", BOOTSTRAP].map(OsString::from);
        let numbers = numbers.map(|number| number.to_string().into());
        let last = [processes.to_string().into(), packages.unwrap_or_default().into()];
        fixed.into_iter().chain(numbers).chain(last).collect()
    }
}

/// Reads the setting `MemoryMegabytes`, as bytes.
pub(super) fn memory(section: &Section<'_>) -> Result<u64, BoxError> {
    let memory = section.get_or("MemoryMegabytes", MEMORY_MEGABYTES)?;
    if !(64..=1 << 20).contains(&memory) {
        return Err("`Scripts.MemoryMegabytes` is between 64 and 1048576".into());
    }
    Ok(memory << 20)
}

/// Returns the folder of installed packages; `None` if there is no place for one.
pub(super) fn package_folder(set: Option<PathBuf>, data: Option<&Path>) -> Option<PathBuf> {
    match set {
        Some(set) => Some(data.map(|data| data.join(&set)).unwrap_or(set)),
        None if is_root() => Some(PACKAGES_OF_ROOT.into()),
        None => data.map(|data| data.join(PACKAGE_FOLDER)),
    }
}

/// Returns the input of the bootstrap.
fn input(script: &Script) -> Vec<u8> {
    [script.source.as_bytes(), script.input.as_bytes()].concat()
}

fn bare(python: &Path, packages: Option<&Path>) -> Command {
    let command = Command::new(python);
    match packages {
        Some(packages) => command.env("PYTHONPATH", packages.to_string_lossy().into_owned()),
        None => command,
    }
}

/// Returns the command of an interpreter inside a sandbox: without network, with a system that it
/// only reads, and with temporary files in memory.
fn sandboxed(python: &Path, packages: Option<&Path>, work: Option<&Path>) -> Command {
    let mut command = Command::new("bwrap").args(WALLS.split(' '));
    if is_root() {
        command = command.user(UNPRIVILEGED);
    }
    for folder in ["/bin", "/sbin", "/lib", "/lib32", "/lib64"] {
        command = command.args(system_folder(Path::new(folder)));
    }
    for path in ["/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"] {
        command = command.args(["--ro-bind-try", path, path]);
    }
    if let Some(packages) = packages {
        command = command.arg("--ro-bind").arg(packages).arg(PACKAGES);
        command = command.args(["--setenv", "PYTHONPATH", PACKAGES]);
    }
    if let Some(work) = work {
        command = command.arg("--bind").arg(work).arg(WORK);
    }
    for (folder, size) in [("/dev/shm", MAX_SHARED), ("/tmp", MAX_TEMPORARY)] {
        command = command.args(["--size", &size.to_string(), "--tmpfs", folder]);
    }
    let fixed = [
        "--setenv",
        "PATH",
        SANDBOX_PATH,
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
        "--chdir",
        "/tmp",
        "--",
    ];
    command.args(fixed).arg(python)
}

/// Returns the arguments that show a folder of the system in the sandbox, as the link or the
/// folder that it is.
fn system_folder(folder: &Path) -> Vec<OsString> {
    match folder.read_link() {
        Ok(target) => vec!["--symlink".into(), target.into(), folder.into()],
        Err(_) if folder.is_dir() => vec!["--ro-bind".into(), folder.into(), folder.into()],
        Err(_) => Vec::new(),
    }
}

/// Returns a listener to the output that reports the last line of it from time to time.
pub(super) fn reporter(cx: &CallContext) -> impl FnMut(&[u8]) + Send + use<> {
    let progress = cx.progress().clone();
    let mut reported: Option<Instant> = None;
    move |part| {
        if !progress.is_open() || reported.is_some_and(|at| at.elapsed() < REPORT_PAUSE) {
            return;
        }
        let text = String::from_utf8_lossy(part);
        if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
            progress.report(line.chars().take(MAX_REPORT).collect::<String>());
            reported = Some(Instant::now());
        }
    }
}

fn result(output: &Output) -> Result<ScriptOutput, ScriptError> {
    let output = captured(output);
    // Its own words when it cannot set up the sandbox.
    match output.stderr.strip_prefix("bwrap: ") {
        Some(reason) if output.exit_code == Some(1) => {
            Err(ScriptError::Unavailable(format!("bubblewrap: {}", reason.trim())))
        }
        _ => Ok(output),
    }
}

/// Returns the output of a process as the output of its script.
pub(super) fn captured(output: &Output) -> ScriptOutput {
    let is_cut = output.is_truncated && output.stdout.len() >= MAX_STDOUT;
    let mut stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if is_cut {
        stdout.push_str(&cut_off());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    ScriptOutput {
        stdout,
        stderr,
        exit_code: output.status.map(code),
        guarantees: None,
        files: Vec::new(),
    }
}

/// Returns the note at the end of an output that was cut off.
pub(super) fn cut_off() -> String {
    format!("\n[cut off after {} KiB: print less]", MAX_STDOUT >> 10)
}

fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let signal = || status.signal().map_or(-1, |signal| 128 + signal);
    status.code().unwrap_or_else(signal)
}

fn unavailable(error: &io::Error) -> ScriptError {
    match error.kind() {
        io::ErrorKind::NotFound => ScriptError::Unavailable(
            "the program `bwrap` is not installed: install the package `bubblewrap`".to_owned(),
        ),
        _ => ScriptError::Unavailable(format!("the process cannot be started: {error}")),
    }
}
