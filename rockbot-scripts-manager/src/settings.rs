//! The settings of the program.

use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::config::Config;

/// Default number of scripts that run at once.
pub(crate) const MAX_CONCURRENT: usize = 4;

/// Maximum of the setting `MaxConcurrentScripts`.
const MOST_CONCURRENT: usize = 256;

/// Default time of running scripts at the end of the program, in seconds.
const SHUTDOWN_SECONDS: u64 = 25;

/// The section `ScriptsManager`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptsManagerSettings {
    /// `Name`: the source of the answers. Default `scripts-manager`.
    pub name: String,
    /// `Backend`: `sandbox` or `kubernetes`. Default `sandbox`.
    pub backend: Backend,
    /// `MaxConcurrentScripts`: number of scripts that run at once, 1 to 256. Default 4. Further
    /// requests wait in their queue.
    pub max_concurrent: usize,
    /// `ShutdownSeconds`: time that running scripts have when the program is told to end;
    /// afterwards they are killed, and their requests go back to the queue. Default 25.
    pub shutdown_time: Duration,
    /// `ProbePort`: port of `/livez` and `/readyz`, on all addresses of the machine; 0 for any free
    /// one. Default: none is opened.
    pub probe_port: Option<u16>,
}

/// The place where scripts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// A sandbox of bubblewrap on the machine of the program: the section `Scripts` configures it.
    Sandbox,
    /// A pod for each script: the section `Kubernetes` configures it.
    Kubernetes,
}

impl ScriptsManagerSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, BoxError> {
        let section = config.section("ScriptsManager")?;
        let max_concurrent = section.get_or("MaxConcurrentScripts", MAX_CONCURRENT)?;
        if !(1..=MOST_CONCURRENT).contains(&max_concurrent) {
            return Err(format!("`ScriptsManager.MaxConcurrentScripts` is between 1 and {MOST_CONCURRENT}").into());
        }
        let backend = match section.get_or("Backend", "sandbox".to_owned())?.as_str() {
            "sandbox" => Backend::Sandbox,
            "kubernetes" => Backend::Kubernetes,
            other => {
                return Err(format!("`ScriptsManager.Backend` is `sandbox` or `kubernetes`, not `{other}`").into());
            }
        };
        Ok(Self {
            name: section.get_or("Name", "scripts-manager".to_owned())?,
            backend,
            max_concurrent,
            shutdown_time: Duration::from_secs(section.get_or("ShutdownSeconds", SHUTDOWN_SECONDS)?),
            probe_port: section.get("ProbePort")?,
        })
    }
}
