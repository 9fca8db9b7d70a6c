//! The files beside a `SKILL.md`, for a model that asks for them.

use std::sync::Arc;

use rockbot_core::chat::Provenance;
use rockbot_core::files::DataFolder;
use rockbot_core::store::Skill;

use super::managed_skill::FOLDER_SOURCE;

/// Maximum number of files of a skill.
const MAX_FILES: usize = 200;
/// Maximum size of a file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The files of a skill as they were found at start; their content is read on demand.
#[derive(Debug, Clone)]
pub(crate) struct SkillFiles {
    root: Arc<DataFolder>,
    /// The folder of the skill, with a trailing slash.
    folder: String,
    names: Vec<String>,
    pub(crate) provenance: Provenance,
}

impl SkillFiles {
    pub(crate) fn new(root: Arc<DataFolder>, folder: &str, mut names: Vec<String>, provenance: Provenance) -> Self {
        names.truncate(MAX_FILES);
        Self {
            root,
            folder: folder.to_owned(),
            names,
            provenance,
        }
    }

    /// Returns `true` if the files belong to `skill`: it was imported from a folder, and is not
    /// trusted more than the folder. An edited skill keeps its files.
    pub(crate) fn belong_to(&self, skill: &Skill) -> bool {
        let origin = skill.provenance.source.split_once(':');
        origin.is_some_and(|(source, _)| source == FOLDER_SOURCE) && skill.provenance.trust <= self.provenance.trust
    }

    /// Returns the names, relative to the skill's folder.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Reads a file; the error is a text for the model. Only files found at start can be read, so no
    /// name leads elsewhere.
    pub(crate) async fn read(&self, name: &str) -> Result<String, String> {
        let name = name.strip_prefix("./").unwrap_or(name);
        let Some(name) = self.names.iter().find(|known| *known == name) else {
            return Err(format!("there is no such file; there are: {}", self.names.join(", ")));
        };
        let root = self.root.clone();
        let path = format!("{}{name}", self.folder);
        let read = tokio::task::spawn_blocking(move || root.read(&path, MAX_BYTES)).await;
        match read {
            Ok(Ok(Some(bytes))) => String::from_utf8(bytes).map_err(|_| format!("`{name}` is no text")),
            Ok(Ok(None)) => Err(format!("`{name}` is gone")),
            // The error contains a path of this machine, which the model must not see.
            Ok(Err(error)) => {
                tracing::warn!(name, %error, "a file of a skill cannot be read");
                Err(format!(
                    "`{name}` cannot be read: it is too large, no plain file, or not permitted"
                ))
            }
            Err(_) => Err(format!("`{name}` could not be read")),
        }
    }
}
