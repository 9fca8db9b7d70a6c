//! The trial of a runner: a script that tries to break the runner's guarantees.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::CallContext;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use super::guarantees::Guarantees;
use super::runner::{Script, ScriptOutput, ScriptRunner};

/// Prints the breaches that it achieved.
const SCRIPT: &str = include_str!("canary.py");

/// The same for a runner that knows a part of Python.
const SUBSET_SCRIPT: &str = include_str!("canary_subset.py");

/// Takes 1 TiB of memory: a script in a part of Python may not survive its limit.
const GREEDY_SCRIPT: &str = "print(len('a' * (1 << 40)))";

/// Time limit of the script.
const LIMIT: Duration = Duration::from_secs(20);

/// Number of looks for the process that the script leaves, and the time between them.
const LOOKS: (usize, Duration) = (40, Duration::from_millis(50));

/// Variables that say nothing about the host.
const COMMON: [&str; 12] = [
    "PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "HOSTNAME",
];

/// Tries out each guarantee that the runner declares, and returns the runner's guarantees, or the
/// reason why it must not be used.
///
/// Blocks for the time of the trial, on a thread of its own: a host is built inside of a runtime,
/// too.
pub(super) fn try_out(runner: &Arc<dyn ScriptRunner>) -> Result<Guarantees, String> {
    let runner = Arc::clone(runner);
    let work = move || -> Result<Guarantees, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(measure(&*runner))
    };
    std::thread::spawn(work)
        .join()
        .unwrap_or_else(|_| Err("the trial of the runner failed".to_owned()))
}

/// Tries out each guarantee that `runner` declares, and returns the runner's guarantees.
///
/// # Errors
///
/// Returns the reason why the runner must not be used: it runs no scripts here, or does not keep a
/// guarantee that it declares.
pub async fn measure(runner: &dyn ScriptRunner) -> Result<Guarantees, String> {
    let declared = runner.guarantees();
    let bait = Bait::new().map_err(|error| format!("the trial cannot be prepared: {error}"))?;
    let is_subset = runner.subset().is_some();
    let source = if is_subset { SUBSET_SCRIPT } else { SCRIPT };
    let output = ran(runner, Script::new(source).with_input(bait.told(declared)?)).await?;
    let mut broken: Vec<_> = broken(&output)?.into_values().flatten().collect();
    if is_subset && declared.limits {
        let greedy = ran(runner, Script::new(GREEDY_SCRIPT)).await?;
        if greedy.exit_code != Some(1) || !greedy.stderr.contains("MemoryError") {
            broken.push("has no limit of memory".to_owned());
        }
    }
    if let Some(words) = broken.first() {
        let name = runner.name();
        return Err(format!("`{name}` does not keep what it guarantees: a script {words}"));
    }
    if declared.cleanup && !is_gone(bait.marker()).await {
        return Err("a process that a script has started goes on when the script has ended".to_owned());
    }
    Ok(declared)
}

async fn ran(runner: &dyn ScriptRunner, script: Script) -> Result<ScriptOutput, String> {
    let output = runner
        .run(script.with_timeout(LIMIT), &CallContext::new("scripts"))
        .await;
    output.map_err(|error| error.to_string())
}

/// Things of the host that a script must not reach.
struct Bait {
    folder: TempDir,
    marker: String,
    server: TcpListener,
    #[cfg(target_os = "linux")]
    _socket: std::os::unix::net::UnixListener,
}

impl Bait {
    fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("rockbot-canary-").tempdir()?;
        // Walls are tried here, not permissions.
        #[cfg(unix)]
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        fs::write(folder.path().join("canary"), "a file of the host")?;
        let marker = folder.path().file_name().unwrap_or_default();
        let marker = marker.to_string_lossy().into_owned();
        Ok(Self {
            server: TcpListener::bind("127.0.0.1:0")?,
            #[cfg(target_os = "linux")]
            _socket: {
                use std::os::linux::net::SocketAddrExt;
                use std::os::unix::net::{SocketAddr, UnixListener};
                UnixListener::bind_addr(&SocketAddr::from_abstract_name(&marker)?)?
            },
            folder,
            marker,
        })
    }

    fn marker(&self) -> &str {
        &self.marker
    }

    /// Returns the input of the script: the places of all bait, without any secret.
    fn told(&self, declared: Guarantees) -> Result<String, String> {
        let address = self.server.local_addr().map_err(|error| error.to_string())?;
        let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        let names: Vec<_> = names.filter(|name| !COMMON.contains(&&**name)).collect();
        let told = json!({
            "declared": declared.keys(),
            "file": self.folder.path().join("canary"),
            "port": address.port(),
            "socket": self.marker,
            "marker": self.marker,
            "variables": names,
        });
        Ok(told.to_string())
    }
}

/// Reads the breaches that the script achieved, by guarantee.
fn broken(output: &ScriptOutput) -> Result<BTreeMap<String, Vec<String>>, String> {
    let unusable = |reason: &str| format!("the trial of the runner failed: {reason}");
    match output.exit_code {
        Some(0) => serde_json::from_str(&output.stdout).map_err(|error| unusable(&error.to_string())),
        Some(_) => Err(unusable(
            output.stderr.trim().lines().last().unwrap_or("it ended early"),
        )),
        None => Err(unusable("it took too long")),
    }
}

/// Waits until no process of this machine has the word in its command line. Returns `false` if
/// one goes on.
async fn is_gone(marker: &str) -> bool {
    let (looks, pause) = LOOKS;
    for _ in 0..looks {
        if !is_running(marker) {
            return true;
        }
        sleep(pause).await;
    }
    false
}

/// Returns `true` if a process of this machine has the word in its command line.
pub(super) fn is_running(marker: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = processes.filter_map(|process| fs::read(command_line(&process.path())).ok());
    lines.any(|line| line.windows(marker.len()).any(|words| words == marker.as_bytes()))
}

fn command_line(process: &Path) -> std::path::PathBuf {
    process.join("cmdline")
}
