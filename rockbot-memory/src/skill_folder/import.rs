//! From a folder into a store.

use std::sync::Arc;

use rockbot_core::chat::Provenance;
use rockbot_core::files::DataFolder;
use rockbot_core::store::{SkillStore, StoreError, StorePath};
use rockbot_core::{Clock, Principal};

use super::SkillFolder;
use super::document::{SkillFile, SkillFileError};
use super::files::SkillFiles;
use super::front_matter::shown;
use super::managed_skill::{FOLDER_SOURCE, ManagedSkill, SkillOutcome};
use super::walk::{self, FoundFiles};
use crate::storage::blocking::{blocking, failed};

/// How many skills are taken from a folder, and how many bytes a `SKILL.md` may have.
const MAX_SKILLS: usize = 1_000;
const MAX_BYTES: u64 = 256 << 10;

/// What became of the skills of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// The skills, in the order of their folders.
    pub skills: Vec<ImportedSkill>,
    /// What is no skill that can be taken.
    pub skipped: Vec<SkippedFile>,
}

/// A skill that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedSkill {
    /// What it is called.
    pub name: StorePath,
    /// Where it is, relative to the folder that was imported; empty if it is that folder itself.
    pub folder: String,
    /// What became of it.
    pub outcome: SkillOutcome,
}

/// Something in a folder that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    /// Where it is, relative to the folder that was imported.
    pub path: String,
    /// Why.
    pub reason: SkipReason,
}

/// Why something in a folder is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// It leads to another place.
    #[error("it is a link, and links are not followed: copy what is meant")]
    Link,
    /// It cannot be read, or is too large.
    #[error("{0}")]
    Unreadable(String),
    /// It is no UTF-8.
    #[error("it is no text in UTF-8")]
    NoText,
    /// It is not in the format.
    #[error(transparent)]
    Invalid(#[from] SkillFileError),
    /// Its name is another one than its folder's.
    #[error("it is named `{0}`: a skill has the name of its folder")]
    OtherName(String),
    /// Another skill of the folder has its name.
    #[error("the skill in `{0}` has the same name")]
    Twice(String),
    /// There are too many.
    #[error("a folder has at most {MAX_SKILLS} skills")]
    TooMany,
}

/// A skill as it lies in a folder.
#[derive(Debug)]
pub(crate) struct FolderSkill {
    pub(crate) skill: ManagedSkill,
    /// With a slash at its end.
    folder: String,
    pub(crate) files: SkillFiles,
}

impl SkillFolder {
    /// Takes the skills of the folder into a store, for `principal`.
    ///
    /// A skill that was imported before is replaced when its text changed, unless somebody changed it in the store
    /// meanwhile; what others wrote under its name stays, and so does what is trusted more than this folder, such as a skill of
    /// the same name from a folder that you trust. Nothing is removed. Folders are looked into six deep, without hidden
    /// ones and `node_modules`, up to 1 000 skills of 256 KiB each. No link is followed. What lies in a skill's folder beside
    /// its `SKILL.md` stays where it is: [`Memory::skill_folder`](crate::Memory::skill_folder) lets a model read it.
    ///
    /// # Errors
    ///
    /// Fails when the folder cannot be read and when the store fails; what was taken before stays.
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

    /// What is there.
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
        // What the folder itself is called; it may be given as `.`.
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
        let provenance = Provenance {
            source: FOLDER_SOURCE.into(),
            trust: self.trust,
        };
        let files = SkillFiles::new(root.clone(), folder, files, provenance);
        Ok(FolderSkill {
            skill,
            folder: folder.to_owned(),
            files,
        })
    }
}

/// A skill that there is room for beside those that were found before.
fn admitted(skill: FolderSkill, before: &[FolderSkill]) -> Result<FolderSkill, SkipReason> {
    if before.len() == MAX_SKILLS {
        return Err(SkipReason::TooMany);
    }
    match before.iter().find(|other| other.skill.name == skill.skill.name) {
        Some(other) => Err(SkipReason::Twice(other.folder.clone())),
        None => Ok(skill),
    }
}
