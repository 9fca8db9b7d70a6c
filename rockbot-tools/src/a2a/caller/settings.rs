//! The section `A2A` of a configuration, as far as it is about calling agents.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::config::Config;
use rockbot_core::service::{AgentCard, AgentDirectory as _, KnownAgents};

use super::super::topics::Topics;
use super::http::remote_agent::{self, RemoteAgent};

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
    /// The agents that the operator names.
    pub(super) well_known: Vec<AgentCard>,
    /// The agents that the operator names by their URLs, with their keys.
    pub(super) remote: Vec<RemoteAgent>,
}

impl CallerSettings {
    /// Reads the settings, and adds the agents that code names. A file that is named must exist.
    pub(super) fn read(
        config: &Config,
        named: Option<PathBuf>,
        mut remote: Vec<RemoteAgent>,
        data: Option<&Path>,
    ) -> Result<Self, BoxError> {
        let section = config.section("A2A")?;
        let below = |path: PathBuf| data.map_or_else(|| path.clone(), |folder| folder.join(&path));
        let set = section.get::<PathBuf>("WellKnownAgentsPath")?.map(below);
        let usual = || data.map(|folder| folder.join(WELL_KNOWN)).filter(|path| path.exists());
        let minutes = section.get_or("DefaultTimeoutMinutes", TIMEOUT_MINUTES)?;
        if minutes == 0 {
            return Err("`A2A.DefaultTimeoutMinutes` is at least 1".into());
        }
        remote.extend(remote_agent::configured(config)?);
        let mut well_known: Vec<_> = remote.iter().filter_map(RemoteAgent::card).collect();
        if let Some(path) = named.or(set).or_else(usual) {
            well_known.extend(
                KnownAgents::from_file(&path)?
                    .agents()
                    .iter()
                    .cloned()
                    .map(without_slash),
            );
            remote.extend(remote_agent::well_known(&std::fs::read_to_string(&path)?)?);
        }
        Ok(Self {
            topics: Topics::read(config)?,
            entry_ttl: section.interval("DirectoryEntryTtl", ENTRY_TTL)?,
            timeout: minutes_long(minutes),
            // Two agents of one name are an error.
            well_known: KnownAgents::new(well_known)?.agents().to_vec(),
            remote,
        })
    }
}

/// Returns a card whose URL is written as all others are.
fn without_slash(mut card: AgentCard) -> AgentCard {
    card.url = card.url.map(|url| RemoteAgent::new(url).url);
    card
}

/// Returns a time of minutes.
pub(super) fn minutes_long(minutes: u32) -> Duration {
    Duration::from_secs(60 * u64::from(minutes))
}
