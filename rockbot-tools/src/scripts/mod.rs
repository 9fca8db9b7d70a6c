//! Python scripts that a model writes: run behind walls that were tried out.
//!
//! Scripts (`rockbot-tools/src/scripts`). A `ScriptRunner` declares guarantees (network, files,
//! credentials, limits, cleanup); `local.rs` runs Python in bubblewrap, and `monty.rs` runs a part
//! of Python where there are no namespaces. A canary tries the guarantees out before the tool is
//! there: the first runner that keeps them has the tool. If none does, there is no tool, and the
//! reasons are in the list of parts. In bubblewrap script and input go through standard input, so
//! nothing of a run is on the disk of the host but the `/work` folders that sessions may keep
//! (`work.rs`). The bootstrap of a script leaves the host's keyring and installs a filter of system calls
//! (seccomp), before the script is read. `remote/` is the runner over the bus: a scripts manager
//! runs the scripts, and declares their guarantees (`wire.rs` has the messages).

mod canary;
mod guarantees;
mod local;
mod monty;
mod package;
mod packages;
mod remote;
mod runner;
mod system;
#[cfg(test)]
mod tests;
mod tool;
pub mod wire;
mod work;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::config::{Config, Section};
use rockbot_core::messaging::Bus;
use rockbot_core::subsystem::{Declarations, Idle, PartCost, Parts, Running, Subsystem};
use rockbot_core::tool::Tool;

pub use canary::measure;
pub use guarantees::Guarantees;
pub use local::LocalScriptRunner;
pub use package::{Package, PackageError};
pub use runner::{Script, ScriptError, ScriptOutput, ScriptRunner, WorkFile};

use local::Isolation;
use monty::MontyScriptRunner;
use remote::RemoteScriptRunner;
use tool::{MAX_SECONDS, ScriptState};
use work::WorkFolders;

/// Default time of a script, in seconds.
const TIMEOUT_SECONDS: u64 = 30;

/// A tool by which a model runs Python scripts of its own: `execute_python_script`.
///
/// On Linux a script runs in a sandbox of [bubblewrap](https://github.com/containers/bubblewrap)
/// without network, with a system that it only reads, and with none of the host's variables, files
/// and rights, and without system calls that reach past namespaces. Its time, the memory, CPU time and file sizes of each of its processes, and their
/// number are limited, and its output is cut off at 256 KiB. The memory of all its processes
/// together has the same limit as that of one: it is looked at five times a second, and a script
/// that goes over it is ended. When it ends, in whatever way, nothing of it stays behind. A host that
/// root runs starts scripts as the user 65534, who owns nothing.
///
/// What a sandbox guarantees is tried out while the host is built, by a script that tries to
/// break each of the [`Guarantees`]. If it succeeds, or if `bwrap` or `python3` is missing or the
/// system refuses namespaces, as in many containers, scripts run in
/// [`monty`](https://pypi.org/project/pydantic-monty-runtime/), if that program is installed: an
/// interpreter of a part of Python, which gives scripts no rights of the system at all, limits the
/// memory of a whole script, and has no packages. Its guide tells the model which part. If `monty`
/// does not pass the trial either, the host has no such tool. The reasons are logged and listed
/// with the parts of the host. What was tried out is named by the guide of the tool and in each
/// answer.
///
/// With the setting `WorkMegabytes` each session has a folder `/work`, which is there again for its
/// next script. A script that goes over the quota, or over 1 000 files, is ended, and what it wrote
/// there is removed. A folder that is unused for 7 days is removed, and so is the one that is unused for
/// longest when 1 000 sessions have one. Calls that may write files are mutating: they run one after
/// the other, and never twice.
///
/// Packages are installed before the script runs, by `uv` or `pip`, outside of the sandbox: from
/// wheels alone, so that nothing of them runs there. A set of packages is installed once, and
/// scripts only read it.
///
/// | setting (`Scripts`) | default |
/// |---|---|
/// | `Runner`: `local` for the sandbox, or `monty` where there is none; `monty`; `remote` for a [scripts manager](Self::remote) | `local` |
/// | `DefaultTimeoutSeconds`: time of a script whose call names none, at most 300 | 30 |
/// | `MemoryMegabytes` (local, monty): memory of each process of a script, and of all of them together | 512 |
/// | `MontyProgram` (local, monty): path of the program `monty`, or its name in `PATH`; a host of root runs it as the user 65534 | `monty` |
/// | `PackageIndex` (local): URL of a package index, or a folder of wheels | the one of `uv` or `pip` |
/// | `WorkMegabytes` (local): quota of the folder `/work` that a session keeps from one script to the next, at most 10240; 0 for no folder | 0 |
/// | `WorkFolder` (local): folder of the sessions' folders, which the user 65534 must be able to reach if root runs the host | `script-work` in the data folder; for root `/var/lib/rockbot/script-work` |
/// | `PackageFolder` (local): folder of installed packages, which all users must be able to read if root runs the host | `script-packages` in the data folder; for root `/var/cache/rockbot/script-packages` |
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
    /// The runner that needs the bus of the host, if it is that.
    remote: Option<Arc<RemoteScriptRunner>>,
}

#[derive(Debug)]
enum Kind {
    /// The setting `Runner` decides.
    Configured,
    Remote,
    Unsafe,
    Given(Arc<dyn ScriptRunner>),
}

/// The values of the setting `Runner`.
enum Place {
    /// In the sandbox, or in `monty` where there is none.
    Local,
    Monty,
    /// At a scripts manager.
    Remote,
}

impl Scripts {
    /// Creates the tool with scripts in a sandbox on this machine, or in `monty` where there is no
    /// sandbox, or with a scripts manager if the setting `Scripts.Runner` is `remote`.
    pub fn new() -> Self {
        Self::of(Kind::Configured)
    }

    /// Creates the tool with scripts that a scripts manager on the bus of the host runs, such as
    /// the program `rockbot-scripts-manager`.
    ///
    /// The host asks managers for their guarantees when it starts. Until a manager has declared
    /// that scripts are walled off, calls of a model that has read untrusted text need an
    /// endorsement. Each answer names the guarantees of the manager that ran the script. A script
    /// without an answer is an error of its call, 30 seconds after its own time; a cancelled script
    /// ends at the manager, too.
    pub fn remote() -> Self {
        Self::of(Kind::Remote)
    }

    /// Creates the tool with scripts that run **without a sandbox**: they have the network, the
    /// files and the rights of this process. For development on a machine without secrets; each
    /// answer says so. Calls of a model that has read untrusted text need an endorsement.
    pub fn unsafe_local() -> Self {
        Self::of(Kind::Unsafe)
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
        Self {
            kind,
            timeout: None,
            remote: None,
        }
    }

    /// Returns the runners of the settings, the preferred one first, and the default time of a
    /// script. A runner over the bus is the only one.
    fn configure(&mut self, parts: &Parts) -> Result<(Vec<Arc<dyn ScriptRunner>>, Duration), BoxError> {
        let config = parts.get::<Config>().unwrap_or_default();
        let section = config.section("Scripts")?;
        let timeout = section.get_or("DefaultTimeoutSeconds", TIMEOUT_SECONDS)?;
        let timeout = self.timeout.unwrap_or(Duration::from_secs(timeout));
        if timeout.is_zero() || timeout > Duration::from_secs(MAX_SECONDS) {
            return Err(format!("`Scripts.DefaultTimeoutSeconds` is between 1 and {MAX_SECONDS}").into());
        }
        let configured = Place::read(&section)?;
        let place = match &self.kind {
            Kind::Given(runner) => return Ok((vec![Arc::clone(runner)], timeout)),
            Kind::Remote => Place::Remote,
            Kind::Configured => configured,
            Kind::Unsafe => Place::Local,
        };
        let runners: Vec<Arc<dyn ScriptRunner>> = match place {
            Place::Remote => vec![self.remote.insert(Arc::default()).clone()],
            Place::Monty => vec![Arc::new(MontyScriptRunner::read(&section)?)],
            Place::Local if matches!(self.kind, Kind::Unsafe) => {
                let data = parts.data_dir();
                vec![Arc::new(LocalScriptRunner::read(&config, data, Isolation::Nothing)?)]
            }
            Place::Local => {
                let mut sandbox = LocalScriptRunner::read(&config, parts.data_dir(), Isolation::Bubblewrap)?;
                sandbox.work = WorkFolders::read(&section, parts.data_dir())?;
                vec![Arc::new(sandbox), Arc::new(MontyScriptRunner::read(&section)?)]
            }
        };
        Ok((runners, timeout))
    }
}

impl Place {
    /// Reads the setting `Runner`.
    fn read(section: &Section<'_>) -> Result<Self, BoxError> {
        match &*section.get_or("Runner", "local".to_owned())? {
            "local" => Ok(Self::Local),
            "monty" => Ok(Self::Monty),
            "remote" => Ok(Self::Remote),
            other => Err(format!("`Scripts.Runner` is `local`, `monty` or `remote`, not `{other}`").into()),
        }
    }
}

/// Tries out the runners in their order. Returns the first that keeps its guarantees, with the
/// line of the part.
fn select(runners: Vec<Arc<dyn ScriptRunner>>) -> Result<(Arc<dyn ScriptRunner>, Guarantees, String), String> {
    let mut refused = Vec::new();
    for runner in runners {
        match canary::try_out(&runner) {
            Ok(guarantees) => {
                let mut part = format!("{}: {guarantees}", runner.name());
                for reason in refused {
                    tracing::warn!(%reason, runner = runner.name(), "scripts run in another runner");
                    part = format!("{part}; chosen because {reason}");
                }
                return Ok((runner, guarantees, part));
            }
            Err(reason) => refused.push(reason),
        }
    }
    Err(refused.join("; "))
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
        let (runners, timeout) = self.configure(declarations.parts())?;
        if let Some(managers) = &self.remote {
            let advice =
                "give the host a bus with `.bus(…)` or `.shared_bus(…)`: a scripts manager runs scripts over it";
            declarations.require::<dyn Bus>(advice);
            let tool = ScriptState::new(managers.clone(), timeout).into_remote_tool(managers.clone());
            add(declarations, "scripts (scripts manager)".to_owned(), tool);
            return Ok(());
        }
        let (runner, guarantees, part) = match select(runners) {
            Ok(selected) => selected,
            Err(reason) => {
                tracing::warn!(%reason, "scripts are not available");
                declarations.cost(PartCost::off(format!("scripts (unavailable: {reason})")));
                return Ok(());
            }
        };
        let tool = ScriptState::new(runner, timeout).into_tool(guarantees);
        add(declarations, format!("scripts ({part})"), tool);
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Ok(match &self.remote {
            Some(remote) => Box::new(remote.start(parts)?),
            None => Box::new(Idle),
        })
    }
}

/// Declares the tool, as this part of the host.
fn add(declarations: &mut Declarations, part: String, tool: Tool) {
    let cost = PartCost::on(part).with_switch("`Scripts.Enabled`");
    declarations.cost(cost.with_tools([tool::NAME.into()]));
    declarations.tool(tool);
}
