//! The section `AgentProfile`.

use std::path::{Path, PathBuf};

use rockbot_core::config::{Config, ConfigError};

use crate::profile::AgentProfileOptions;

/// The base folder of an agent in production: the volume of its container.
pub const PRODUCTION_FOLDER: &str = "/data/agent";

/// The base folder of the agent, and the files of its profile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentProfileSettings {
    /// `BasePath`: the folder of the profile and of everything that the agent stores. Default
    /// [`PRODUCTION_FOLDER`] if that folder exists, else the folder that the program passes.
    /// `SoulPath`, `DirectivesPath`, `StylePath` and `MemoryRulesPath`: files in it, with the
    /// defaults of [`AgentProfileOptions`].
    pub options: AgentProfileOptions,
    /// The reason for the choice of the base folder.
    pub chosen: FolderChoice,
}

/// The reason for the choice of a base folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FolderChoice {
    /// The configuration names the folder.
    Configured,
    /// The folder [`PRODUCTION_FOLDER`] exists.
    Production,
    /// The program passed the folder.
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

    /// Returns the base folder.
    pub fn base_path(&self) -> &Path {
        &self.options.base_path
    }

    /// Returns `true` if the base folder has a profile: its first file, `soul.md` unless `SoulPath`
    /// names another file.
    pub fn is_there(&self) -> bool {
        self.base_path().join(&self.options.soul).exists()
    }
}

/// Chooses the base folder: the configured one, else the production folder if it exists, else the
/// program's.
pub(super) fn choose(configured: Option<PathBuf>, production: &Path, data_folder: &Path) -> (PathBuf, FolderChoice) {
    match configured {
        Some(folder) => (folder, FolderChoice::Configured),
        None if production.is_dir() => (production.to_owned(), FolderChoice::Production),
        None => (data_folder.to_owned(), FolderChoice::OfTheHost),
    }
}
