//! The agent's folders, and its initial profile: files that the operator edits.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rockbot::agent::profile::AgentProfileOptions;
use rockbot::config::{Config, FolderChoice, HostSettings};
use rockbot::prelude::*;
use rockbot::tool_services::ToolServices;
use rockbot::turn::{Briefing, TurnPolicies};

/// The default data folder.
const DATA_FOLDER: &str = "data/full_agent";

/// Time that a tool call waits for an approval, unless `AgentHost.ApprovalExpiry` is set.
const APPROVAL_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

/// The folders of the agent, and what its settings leave open.
pub(crate) struct Folders {
    /// The folder of everything that the agent keeps.
    pub(crate) data: PathBuf,
    pub(crate) profile: AgentProfileOptions,
    pub(crate) briefing: Briefing,
    pub(crate) policies: TurnPolicies,
}

impl Folders {
    /// Reads the section `AgentProfile`, whose `BasePath` is the data folder unless `data` names one.
    /// The profile is there if the operator named it, else in the folder `agent` of the data folder.
    pub(crate) fn read(data: Option<&Path>, config: &Config) -> Result<Self, BoxError> {
        let settings = HostSettings::read(config, data.unwrap_or(Path::new(DATA_FOLDER)))?;
        let base = settings.agent_profile.base_path();
        let data = data.unwrap_or(base).to_owned();
        let is_profile = match settings.agent_profile.chosen {
            FolderChoice::Configured => true,
            FolderChoice::Production => data == base,
            _ => false,
        };
        let mut profile = settings.agent_profile.options.clone();
        if !is_profile {
            profile.base_path = data.join("agent");
        }
        // The model keeps a task list, beside what the settings let it be told.
        let mut briefing = settings.briefing();
        briefing.task_list = true;
        let policies = match config.section("AgentHost")?.setting("ApprovalExpiry") {
            Some(_) => TurnPolicies::new(),
            None => TurnPolicies::new().with_approval_expiry(APPROVAL_EXPIRY),
        };
        Ok(Self {
            data,
            profile,
            briefing,
            policies,
        })
    }
}

/// Returns the tools of other processes, whose descriptors are in the folder `tool-services` of
/// the profile unless `ToolServices.Folder` names one.
pub(crate) fn tool_services(bus: Arc<dyn Bus>, profile: &Path, config: &Config) -> Result<ToolServices, BoxError> {
    let services = ToolServices::new().bus(bus);
    if config.section("ToolServices")?.setting("Folder").is_some() {
        return Ok(services);
    }
    let folder = profile.join("tool-services");
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Ok(services.folder(folder)),
        Err(error) => Err(format!("cannot create `{}`: {error}", folder.display()).into()),
    }
}

/// Writes the files of the profile that are missing. Existing files are never overwritten.
pub(crate) fn seed(profile: &AgentProfileOptions) -> Result<(), BoxError> {
    let failed = |path: &Path, error: &std::io::Error| {
        let path = path.display();
        format!("cannot write `{path}`: {error}; choose another folder with --data")
    };
    let folder = &profile.base_path;
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let soul = (&profile.soul, include_str!("agent/soul.md"));
    let directives = (&profile.directives, include_str!("agent/directives.md"));
    let style = profile
        .style
        .as_ref()
        .map(|style| (style, include_str!("agent/style.md")));
    for (name, text) in [soul, directives].into_iter().chain(style) {
        let path = folder.join(name);
        match File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(&path, &error).into()),
            _ => {}
        }
    }
    Ok(())
}
