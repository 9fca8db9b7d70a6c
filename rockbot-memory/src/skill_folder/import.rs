//! Imports skills from a folder into a store.

use std::sync::Arc;

use rockbot_core::chat::Provenance;
use rockbot_core::files::DataFolder;
use rockbot_core::store::{SkillStore, StoreError, StorePath};
use rockbot_core::{Clock, Principal};
use rockbot_store::kit::{blocking, failed};

use super::SkillFolder;
use super::document::{SkillFile, SkillFileError};
use super::files::SkillFiles;
use super::front_matter::shown;
use super::managed_skill::{FOLDER_SOURCE, ManagedSkill, SkillOutcome};
use super::walk::{self, FoundFiles};

/// Maximum number of skills in a folder, and maximum size of a `SKILL.md`, in bytes.
const MAX_SKILLS: usize = 1_000;
const MAX_BYTES: u64 = 256 << 10;

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// The skills, in the order of their folders.
    pub skills: Vec<ImportedSkill>,
    /// Files that were not imported.
    pub skipped: Vec<SkippedFile>,
}

/// An imported skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportedSkill {
    /// The name of the skill.
    pub name: StorePath,
    /// Folder of the skill, relative to the imported one; empty if it is that folder itself.
    pub folder: String,
    /// The fate of the skill.
    pub outcome: SkillOutcome,
}

/// A file that was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedFile {
    /// Path of the file, relative to the imported folder.
    pub path: String,
    /// The reason.
    pub reason: SkipReason,
}

/// The reason why a file was not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// The file is a link.
    #[error("it is a link, and links are not followed: copy what is meant")]
    Link,
    /// The file cannot be read, or is too large.
    #[error("{0}")]
    Unreadable(String),
    /// The file is not UTF-8.
    #[error("it is no text in UTF-8")]
    NoText,
    /// The file violates the format.
    #[error(transparent)]
    Invalid(#[from] SkillFileError),
    /// The name of the skill differs from the name of its folder.
    #[error("it is named `{0}`: a skill has the name of its folder")]
    OtherName(String),
    /// Another skill of the folder has its name.
    #[error("the skill in `{0}` has the same name")]
    Twice(String),
    /// The folder has too many skills.
    #[error("a folder has at most {MAX_SKILLS} skills")]
    TooMany,
}

/// A skill read from a folder.
#[derive(Debug)]
pub(crate) struct FolderSkill {
    pub(crate) skill: ManagedSkill,
    /// Folder of the skill, with a trailing slash.
    folder: String,
    pub(crate) files: SkillFiles,
}

impl SkillFolder {
    /// Imports the skills of the folder into a store, for `principal`.
    ///
    /// A skill that was imported before is replaced when its text changed, unless it was edited in
    /// the store meanwhile. A skill of the same name from another author stays, and so does a skill
    /// that is trusted more than this folder, such as a skill of the same name from a folder that you
    /// trust. Nothing is removed. Folders are searched six levels deep, without hidden ones and
    /// `node_modules`, for up to 1 000 skills of 256 KiB each. No link is followed. Files beside a
    /// `SKILL.md` stay where they are: [`Memory::skill_folder`](crate::Memory::skill_folder) lets a
    /// model read them.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read or the store fails; skills imported before stay.
    pub async fn import(
        &self,
        principal: &Principal,
        to: &dyn SkillStore,
        clock: &dyn Clock,
    ) -> Result<ImportReport, StoreError> {
        let (skills, skipped) = self.read().await?;
        let mut report = ImportReport {
            skills: Vec::with_capacity(skills.len()),
            skipped,
        };
        for FolderSkill { skill, folder, .. } in skills {
            let name = skill.name.clone();
            let outcome = skill.install_into(to, principal, false, clock.now()).await?;
            let folder = folder.trim_end_matches('/').to_owned();
            report.skills.push(ImportedSkill { name, folder, outcome });
        }
        Ok(report)
    }

    /// Reads the skills of the folder.
    pub(crate) async fn read(&self) -> Result<(Vec<FolderSkill>, Vec<SkippedFile>), StoreError> {
        let this = self.clone();
        blocking(move || this.read_now()).await
    }

    fn read_now(&self) -> Result<(Vec<FolderSkill>, Vec<SkippedFile>), StoreError> {
        let cannot = |error| {
            failed(
                format_args!("the skills in `{}` cannot be read", self.path.display()),
                error,
            )
        };
        // The real name of the folder: the path may be `.`.
        let path = std::fs::canonicalize(&self.path).map_err(cannot)?;
        let found = FoundFiles::in_folder(&path).map_err(cannot)?;
        let root = Arc::new(DataFolder::unheld(path));
        let link = |path: &String| SkippedFile {
            path: path.clone(),
            reason: SkipReason::Link,
        };
        let mut skipped: Vec<_> = found.links.iter().map(link).collect();
        let mut skills = Vec::new();
        for (folder, files) in found.skills() {
            let skill = self.skill(&root, folder, files);
            match skill.and_then(|skill| admitted(skill, &skills)) {
                Ok(skill) => skills.push(skill),
                Err(reason) => skipped.push(SkippedFile {
                    path: format!("{folder}{}", walk::FILE),
                    reason,
                }),
            }
        }
        Ok((skills, skipped))
    }

    fn skill(&self, root: &Arc<DataFolder>, folder: &str, files: Vec<String>) -> Result<FolderSkill, SkipReason> {
        let read = root.read(&format!("{folder}{}", walk::FILE), MAX_BYTES);
        let bytes = read.map_err(|error| SkipReason::Unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes.unwrap_or_default()).map_err(|_| SkipReason::NoText)?;
        let file = SkillFile::parse(&text)?;
        let path = root.path().join(folder);
        if path.file_name().is_none_or(|name| *name != *file.name) {
            return Err(SkipReason::OtherName(shown(&file.name)));
        }
        let name = file.name.clone();
        let skill = file.into_managed(self.trust).ok_or(SkillFileError::Name(name))?;
        let provenance = Provenance::new(FOLDER_SOURCE, self.trust);
        let files = SkillFiles::new(root.clone(), folder, files, provenance);
        Ok(FolderSkill {
            skill,
            folder: folder.to_owned(),
            files,
        })
    }
}

/// Admits a skill, unless the limit is reached or an earlier skill has its name.
fn admitted(skill: FolderSkill, before: &[FolderSkill]) -> Result<FolderSkill, SkipReason> {
    if before.len() == MAX_SKILLS {
        return Err(SkipReason::TooMany);
    }
    match before.iter().find(|other| other.skill.name == skill.skill.name) {
        Some(other) => Err(SkipReason::Twice(other.folder.clone())),
        None => Ok(skill),
    }
}
