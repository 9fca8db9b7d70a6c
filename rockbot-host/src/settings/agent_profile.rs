//! The section `AgentProfile`.

use std::path::{Path, PathBuf};

use rockbot_core::config::{Config, ConfigError};

use crate::profile::AgentProfileOptions;

/// Where an agent lives in production: the volume of its container.
pub const PRODUCTION_FOLDER: &str = "/data/agent";

/// Where the agent lives, and the files that say who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentProfileSettings {
    /// `BasePath`, the folder of the profile and of everything that the agent keeps: default [`PRODUCTION_FOLDER`] if
    /// there is such a folder, else what the host chooses. And `SoulPath`, `DirectivesPath`, `StylePath` and
    /// `MemoryRulesPath` in it, with the defaults of [`AgentProfileOptions`].
    pub options: AgentProfileOptions,
    /// Why it is that folder.
    pub chosen: FolderChoice,
}

/// Why a folder was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderChoice {
    /// The configuration names it.
    Configured,
    /// It is [`PRODUCTION_FOLDER`], and that is there.
    Production,
    /// It is what the host chose for itself.
    OfTheHost,
}

impl AgentProfileSettings {
    pub(super) fn read(config: &Config, data_folder: &Path) -> Result<Self, ConfigError> {
        let section = config.section("AgentProfile")?;
        let (base_path, chosen) = choose(section.get("BasePath")?, Path::new(PRODUCTION_FOLDER), data_folder);
        let default = AgentProfileOptions::new(base_path);
        let options = AgentProfileOptions {
            soul: section.get_or("SoulPath", default.soul)?,
            directives: section.get_or("DirectivesPath", default.directives)?,
            style: section.get("StylePath")?.or(default.style),
            memory_rules: section.get("MemoryRulesPath")?.or(default.memory_rules),
            base_path: default.base_path,
        };
        Ok(Self { options, chosen })
    }

    /// The folder in which the agent lives.
    pub fn base_path(&self) -> &Path {
        &self.options.base_path
    }

    /// Whether there is a profile in that folder: its first file, `soul.md` unless set otherwise.
    pub fn is_there(&self) -> bool {
        self.base_path().join(&self.options.soul).exists()
    }
}

/// The first of the three folders that can be meant.
pub(super) fn choose(configured: Option<PathBuf>, production: &Path, data_folder: &Path) -> (PathBuf, FolderChoice) {
    match configured {
        Some(folder) => (folder, FolderChoice::Configured),
        None if production.is_dir() => (production.to_owned(), FolderChoice::Production),
        None => (data_folder.to_owned(), FolderChoice::OfTheHost),
    }
}
