//! Fills options that are not set in code from the host's settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockbot_core::BoxError;
use rockbot_core::config::{Config, ConfigError};
use rockbot_core::store::{FeedbackStore, InMemoryFeedbackStore};
use rockbot_store::file::FileFeedbackStore;

use super::Memory;
use crate::Retention;
use crate::settings::{FeedbackSettings, MemorySettings, SkillsSettings};

/// The folders of the stores; a store without one is in memory.
#[derive(Debug, Default)]
pub(super) struct Folders {
    pub(super) memory: Option<PathBuf>,
    pub(super) memory_rules: Option<PathBuf>,
    pub(super) skills: Option<PathBuf>,
    pub(super) skill_usage: Option<PathBuf>,
    pub(super) feedback: Option<PathBuf>,
}

impl Memory {
    /// Fills the folders that are not set in code from the settings.
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

/// Resolves a path below the data folder; without a data folder, only an absolute path resolves.
pub(crate) fn below(data_dir: Option<&Path>, path: PathBuf) -> Option<PathBuf> {
    match data_dir {
        Some(folder) => Some(folder.join(path)),
        None => path.is_absolute().then_some(path),
    }
}

/// Opens the feedback in `folder`, or in memory without one.
pub(crate) fn open_feedback(folder: Option<&Path>) -> Result<Arc<dyn FeedbackStore>, BoxError> {
    Ok(match folder {
        Some(folder) => Arc::new(FileFeedbackStore::open(folder)?),
        None => Arc::new(InMemoryFeedbackStore::new()),
    })
}
