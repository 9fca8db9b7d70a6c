//! The section `A2A` of a configuration, as far as it is about calling agents.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::config::Config;

use super::super::topics::Topics;

/// Name of the file of agents that the operator names, in the data folder.
const WELL_KNOWN: &str = "well-known-agents.json";

/// Default time after which an agent that is silent is forgotten.
const ENTRY_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Default time limit of a task, in minutes.
pub(super) const TIMEOUT_MINUTES: u32 = 5;

/// The settings of a caller.
#[derive(Debug, Clone)]
pub(super) struct CallerSettings {
    pub(super) topics: Topics,
    pub(super) entry_ttl: Duration,
    pub(super) timeout: Duration,
    /// File of the agents that the operator names, if there is one.
    pub(super) well_known: Option<PathBuf>,
}

impl CallerSettings {
    /// Reads the settings. A file that is named must exist.
    pub(super) fn read(config: &Config, named: Option<PathBuf>, data: Option<&Path>) -> Result<Self, BoxError> {
        let section = config.section("A2A")?;
        let below = |path: PathBuf| data.map_or_else(|| path.clone(), |folder| folder.join(&path));
        let set = section.get::<PathBuf>("WellKnownAgentsPath")?.map(below);
        let usual = || data.map(|folder| folder.join(WELL_KNOWN)).filter(|path| path.exists());
        let minutes = section.get_or("DefaultTimeoutMinutes", TIMEOUT_MINUTES)?;
        if minutes == 0 {
            return Err("`A2A.DefaultTimeoutMinutes` is at least 1".into());
        }
        Ok(Self {
            topics: Topics::read(config)?,
            entry_ttl: section.interval("DirectoryEntryTtl", ENTRY_TTL)?,
            timeout: minutes_long(minutes),
            well_known: named.or(set).or_else(usual),
        })
    }
}

/// Returns a time of minutes.
pub(super) fn minutes_long(minutes: u32) -> Duration {
    Duration::from_secs(60 * u64::from(minutes))
}
