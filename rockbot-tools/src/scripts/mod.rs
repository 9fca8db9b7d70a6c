//! Python scripts that a model writes: run behind walls that were tried out.
//!
//! Scripts (`rockbot-tools/src/scripts`). A `ScriptRunner` declares guarantees (network, files,
//! credentials, limits, cleanup); `local.rs` runs Python in bubblewrap. A canary tries the
//! guarantees out before the tool is there. A guarantee that does not hold keeps the tool away,
//! with the reason in the list of parts. Script and input go through standard input, so nothing
//! of a run is on the disk of the host.

mod canary;
mod guarantees;
mod local;
mod package;
mod packages;
mod runner;
mod system;
#[cfg(test)]
mod tests;
mod tool;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::config::Config;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::{BoxError, Secret};

pub use guarantees::Guarantees;
pub use package::{Package, PackageError};
pub use runner::{Script, ScriptError, ScriptOutput, ScriptRunner};

use local::{Isolation, LocalRunner};
use packages::PackageCache;
use tool::{MAX_SECONDS, ScriptState};

/// Default time of a script, in seconds.
const TIMEOUT_SECONDS: u64 = 30;

/// Default memory of a process, in MiB.
const MEMORY_MEGABYTES: u64 = 512;

/// Folder of packages below the data folder.
const PACKAGES: &str = "script-packages";

/// Folder of packages of a host that root runs: scripts run as another user, who reads no data
/// folder.
const PACKAGES_OF_ROOT: &str = "/var/cache/rockbot/script-packages";

/// A tool by which a model runs Python scripts of its own: `execute_python_script`.
///
/// On Linux a script runs in a sandbox of [bubblewrap](https://github.com/containers/bubblewrap) without network, with a
/// system that it only reads, and with none of the host's variables, files and rights. Its time, the memory, CPU time and
/// file sizes of each of its processes, and their number are limited, and its output is cut off at 256 KiB; the memory of
/// all its processes together is not limited. When it ends, in whatever way, nothing of it stays behind. A host that root
/// runs starts scripts as the user 65534, who owns nothing.
///
/// What a sandbox guarantees is tried out while the host is built, by a script that tries to
/// break each of the [`Guarantees`]. If it succeeds, or if `bwrap` or `python3` is missing or the
/// system refuses namespaces, as in many containers, the host has no such tool, and the reason is
/// logged and listed with the parts of the host. What was tried out is named by the guide of the
/// tool and in each answer.
///
/// Packages are installed before the script runs, by `uv` or `pip`, outside of the sandbox: from
/// wheels alone, so that nothing of them runs there. A set of packages is installed once, and
/// scripts only read it.
///
/// | setting (`Scripts`) | default |
/// |---|---|
/// | `DefaultTimeoutSeconds`: time of a script whose call names none, at most 300 | 30 |
/// | `MemoryMegabytes`: memory of each process of a script | 512 |
/// | `PackageIndex`: URL of a package index, or a folder of wheels | the one of `uv` or `pip` |
/// | `PackageFolder`: folder of installed packages, which all users must be able to read if root runs the host | `script-packages` in the data folder; for root `/var/cache/rockbot/script-packages` |
///
/// ```
/// use rockbot_core::subsystem::{Declarations, Parts, Subsystem as _};
/// use rockbot_core::{AgentIdentity, SystemClock};
/// use rockbot_tools::scripts::Scripts;
///
/// // A host calls this for `.add(Scripts::new())`.
/// let parts = Parts::new(AgentIdentity::new("clerk"), std::sync::Arc::new(SystemClock), None);
/// let mut declarations = Declarations::new(parts);
/// Scripts::new().declare(&mut declarations)?;
/// let declared = declarations.merge();
/// // "scripts (bubblewrap: no network, …)", or "scripts (unavailable: …)" without a tool.
/// println!("{}", declared.costs[0].1.part);
/// # Ok::<(), rockbot_core::BoxError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Scripts {
    kind: Kind,
    timeout: Option<Duration>,
}

#[derive(Debug)]
enum Kind {
    Local(Isolation),
    Given(Arc<dyn ScriptRunner>),
}

impl Scripts {
    /// Creates the tool with scripts in a sandbox on this machine.
    pub fn new() -> Self {
        Self::of(Kind::Local(Isolation::Bubblewrap))
    }

    /// Creates the tool with scripts that run **without a sandbox**: they have the network, the files
    /// and the rights of this process. For development on a machine without secrets; each answer says
    /// so. Calls of a model that has read untrusted text need an endorsement.
    pub fn unsafe_local() -> Self {
        Self::of(Kind::Local(Isolation::Nothing))
    }

    /// Creates the tool with scripts that another runner runs.
    pub fn with_runner(runner: impl ScriptRunner) -> Self {
        Self::of(Kind::Given(Arc::new(runner)))
    }

    /// Sets the time of a script whose call names none. Default 30 seconds, or the setting
    /// `Scripts.DefaultTimeoutSeconds`.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn of(kind: Kind) -> Self {
        Self { kind, timeout: None }
    }

    /// Returns the runner and the default time of the settings.
    fn configure(&self, parts: &Parts) -> Result<(Arc<dyn ScriptRunner>, Duration), BoxError> {
        let config = parts.get::<Config>().unwrap_or_default();
        let section = config.section("Scripts")?;
        let timeout = section.get_or("DefaultTimeoutSeconds", TIMEOUT_SECONDS)?;
        let memory = section.get_or("MemoryMegabytes", MEMORY_MEGABYTES)?;
        let index = section.get::<Secret>("PackageIndex")?;
        let folder = section.get::<PathBuf>("PackageFolder")?;
        let timeout = self.timeout.unwrap_or(Duration::from_secs(timeout));
        if timeout.is_zero() || timeout > Duration::from_secs(MAX_SECONDS) {
            return Err(format!("`Scripts.DefaultTimeoutSeconds` is between 1 and {MAX_SECONDS}").into());
        }
        if !(64..=1 << 20).contains(&memory) {
            return Err("`Scripts.MemoryMegabytes` is between 64 and 1048576".into());
        }
        let runner: Arc<dyn ScriptRunner> = match &self.kind {
            Kind::Given(runner) => Arc::clone(runner),
            Kind::Local(isolation) => Arc::new(LocalRunner {
                isolation: *isolation,
                memory: memory << 20,
                packages: PackageCache {
                    folder: package_folder(folder, parts),
                    index,
                },
            }),
        };
        Ok((runner, timeout))
    }
}

impl Default for Scripts {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Subsystem for Scripts {
    fn name(&self) -> &str {
        "scripts"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        let (runner, timeout) = self.configure(declarations.parts())?;
        let guarantees = match canary::try_out(&runner) {
            Ok(guarantees) => guarantees,
            Err(reason) => {
                tracing::warn!(%reason, "scripts are not available");
                declarations.cost(PartCost::off(format!("scripts (unavailable: {reason})")));
                return Ok(());
            }
        };
        let part = format!("scripts ({}: {guarantees})", runner.name());
        let state = ScriptState {
            runner,
            guarantees,
            timeout,
        };
        let cost = PartCost::on(part).with_switch("`Scripts.Enabled`");
        declarations.cost(cost.with_tools([tool::NAME.into()]));
        declarations.tool(state.into_tool());
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Ok(Box::new(Idle))
    }
}

/// Returns the folder of installed packages; `None` if there is no place for one.
fn package_folder(set: Option<PathBuf>, parts: &Parts) -> Option<PathBuf> {
    let data = parts.data_dir();
    match set {
        Some(set) => Some(data.map(|data| data.join(&set)).unwrap_or(set)),
        None if system::is_root() => Some(PACKAGES_OF_ROOT.into()),
        None => data.map(|data| data.join(PACKAGES)),
    }
}
