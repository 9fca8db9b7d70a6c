//! Where files are.

use std::path::{Path, PathBuf};

use rockbot_core::config::{Config, ConfigError};

use crate::settings::{FeedbackSettings, MemorySettings, SkillsSettings};

/// Where files are; what has no place is in memory.
#[derive(Debug, Default)]
pub(super) struct Folders {
    pub(super) memory: Option<PathBuf>,
    pub(super) memory_rules: Option<PathBuf>,
    pub(super) skills: Option<PathBuf>,
    pub(super) skill_usage: Option<PathBuf>,
    pub(super) feedback: Option<PathBuf>,
}

impl Folders {
    /// What nobody chose is where the settings say.
    pub(super) fn complete(&mut self, config: &Config, data_dir: Option<&Path>) -> Result<(), ConfigError> {
        let memory = MemorySettings::from_config(config)?;
        let skills = SkillsSettings::from_config(config)?;
        let feedback = FeedbackSettings::from_config(config)?;
        for (place, set) in [
            (&mut self.memory, memory.base_path),
            (&mut self.memory_rules, memory.rules_path),
            (&mut self.skills, skills.base_path),
            (&mut self.skill_usage, skills.usage_base_path),
            (&mut self.feedback, feedback.base_path),
        ] {
            *place = place.take().or_else(|| below(data_dir, set));
        }
        Ok(())
    }
}

/// The path below the data folder; without one only an absolute path is a place.
fn below(data_dir: Option<&Path>, path: PathBuf) -> Option<PathBuf> {
    match data_dir {
        Some(folder) => Some(folder.join(path)),
        None => path.is_absolute().then_some(path),
    }
}
