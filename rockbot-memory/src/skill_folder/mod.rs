//! Folders of skills in the open [Agent Skills](https://agentskills.io/specification) format: [`SkillFolder`].
//!
//! A skill is a folder with a `SKILL.md`: YAML fields, at least `name` and `description`, then
//! Markdown. The other files of the folder belong to the skill.

mod document;
mod export;
mod files;
mod front_matter;
mod import;
mod managed_skill;
#[cfg(test)]
mod tests;
mod walk;

use std::path::{Path, PathBuf};

use rockbot_core::context::Trust;

pub use document::SkillFileError;
pub use export::{ExportOptions, ExportReport, ExportedSkill};
pub(crate) use files::SkillFiles;
pub(crate) use import::FolderSkill;
pub use import::{ImportReport, ImportedSkill, SkipReason, SkippedFile};
pub(crate) use managed_skill::ManagedSkill;
pub use managed_skill::SkillOutcome;

/// A folder of skills in the open format, as other agents use it: `{name}/SKILL.md`.
///
/// Names have 1 to 64 letters `a-z`, digits and single hyphens, and equal those of their folders;
/// a description has 1 to 1 024 characters. The fields `license`, `compatibility`,
/// `allowed-tools` and `metadata` are stored in [`Skill::metadata`]; none of them has an effect:
/// a folder cannot allow itself a tool. Unknown fields are left out.
///
/// Skills of a folder are untrusted unless [declared otherwise](SkillFolder::with_trust): they
/// are not in the list at the beginning of a conversation, and a turn that was shown one is
/// tainted like a turn that read a web page. They are found when they fit a message, and by
/// `get_skill` without a name.
///
/// # Examples
///
/// ```
/// use rockbot_core::store::{InMemorySkillStore, SkillStore};
/// use rockbot_core::{Principal, SystemClock};
/// use rockbot_memory::skill_folder::{ExportOptions, SkillFolder};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::BoxError> {
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path();
/// std::fs::create_dir(path.join("tea"))?;
/// let text = "---\nname: tea\ndescription: Makes tea. Use when a guest is thirsty.\n---\n\nBoil water first.\n";
/// std::fs::write(path.join("tea/SKILL.md"), text)?;
///
/// let (me, store) = (Principal::default(), InMemorySkillStore::new());
/// let report = SkillFolder::new(path).import(&me, &store, &SystemClock).await?;
/// assert_eq!(report.skills[0].name.as_str(), "tea");
/// assert_eq!(store.list(&me).await?[0].content, "Boil water first.");
///
/// let others = SkillFolder::new(path.join("others"));
/// others.export(&me, &store, &ExportOptions::default()).await?;
/// assert!(path.join("others/tea/SKILL.md").is_file());
/// # Ok(())
/// # }
/// ```
///
/// [`Skill::metadata`]: rockbot_core::store::Skill::metadata
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    path: PathBuf,
    trust: Trust,
}

impl SkillFolder {
    /// Creates a folder at `path`. Its skills are untrusted.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            trust: Trust::Untrusted,
        }
    }

    /// Sets the trust of its texts: [`Trust::Host`] if you wrote them, or have read them all. Skills
    /// imported with a higher trust stay as they are: delete one to import it again.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
