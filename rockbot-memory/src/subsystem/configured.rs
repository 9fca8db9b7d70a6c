//! What the settings of a host say where nobody said it in code.

use std::path::{Path, PathBuf};

use rockbot_core::config::{Config, ConfigError};

use super::Memory;
use crate::Retention;
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

impl Memory {
    /// Takes from the settings what was not said in code.
    pub(super) fn complete(&mut self, config: &Config, data_dir: Option<&Path>) -> Result<(), ConfigError> {
        let memory = MemorySettings::from_config(config)?;
        let skills = SkillsSettings::from_config(config)?;
        let feedback = FeedbackSettings::from_config(config)?;
        for (place, set) in [
            (&mut self.folders.memory, memory.base_path),
            (&mut self.folders.memory_rules, memory.rules_path),
            (&mut self.folders.skills, skills.base_path),
            (&mut self.folders.skill_usage, skills.usage_base_path),
            (&mut self.folders.feedback, feedback.base_path),
        ] {
            *place = place.take().or_else(|| below(data_dir, set));
        }
        self.retention.get_or_insert(Retention {
            archived: memory.archive_retention,
            feedback: feedback.retention,
            skill_usage: skills.usage_retention,
            ..Retention::default()
        });
        Ok(())
    }
}

/// The path below the data folder; without one only an absolute path is a place.
pub(super) fn below(data_dir: Option<&Path>, path: PathBuf) -> Option<PathBuf> {
    match data_dir {
        Some(folder) => Some(folder.join(path)),
        None => path.is_absolute().then_some(path),
    }
}
