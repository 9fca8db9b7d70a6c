//! Exports skills from a store into a folder.

use std::collections::BTreeMap;

use rockbot_core::Principal;
use rockbot_core::files::{DataFolder, FileError};
use rockbot_core::store::{Skill, SkillStore, StoreError, StorePath};
use rockbot_store::kit::{blocking, failed};

use super::document::SkillFile;
use super::managed_skill::SkillOutcome;
use super::{SkillFolder, walk};

/// Maximum size of a file that may be an earlier export, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Options of an export.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ExportOptions {
    /// Names of the skills to export. Default `None`: all skills.
    pub names: Option<Vec<StorePath>>,
    /// Overwrites files that were not exported, or were edited since. Default: such files stay.
    pub overwrite: bool,
}

impl ExportOptions {
    /// Sets the names of the skills to export. Default `None`: all skills.
    #[must_use]
    pub fn with_names(mut self, names: Vec<StorePath>) -> Self {
        self.names = Some(names);
        self
    }

    /// Sets whether files that were not exported, or were edited since, are overwritten. Default
    /// `false`.
    #[must_use]
    pub fn with_overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }
}

/// The result of an export.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ExportReport {
    /// The exported skills, in the order of their names.
    pub skills: Vec<ExportedSkill>,
    /// Requested names without a skill.
    pub missing: Vec<StorePath>,
    /// Skills that were not exported because another skill has the same name in the format.
    pub crowded: Vec<StorePath>,
}

/// An exported skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportedSkill {
    /// The name in the store.
    pub name: StorePath,
    /// The folder, which is also the name in the format.
    pub folder: String,
    /// The fate of the file.
    pub outcome: SkillOutcome,
}

impl SkillFolder {
    /// Exports skills of `principal` into the folder, which is created if it is missing: one folder
    /// each, with a name that the format allows. `mcp/email` becomes `mcp-email`; the file records
    /// the original name, which an import restores. A skill without a summary is described by its
    /// first line. Ages, uses and related skills are not exported.
    ///
    /// An existing file is replaced if it was exported and has not been edited since. A link in its
    /// place is replaced only with [`ExportOptions::overwrite`], a link in the place of its folder
    /// never; no link is followed.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read or the folder cannot be written; files written
    /// before stay.
    pub async fn export(
        &self,
        principal: &Principal,
        from: &dyn SkillStore,
        options: &ExportOptions,
    ) -> Result<ExportReport, StoreError> {
        let skills = from.list(principal).await?.into_iter();
        let skills = skills.filter(|skill| skill.is_live());
        let mut skills: BTreeMap<_, _> = skills.map(|skill| (skill.name.clone(), skill)).collect();
        let mut report = ExportReport::default();
        if let Some(names) = &options.names {
            report.missing = names
                .iter()
                .filter(|name| !skills.contains_key(*name))
                .cloned()
                .collect();
            skills.retain(|name, _| names.contains(name));
        }
        let folder = self.path.clone();
        let overwrite = options.overwrite;
        blocking(move || {
            std::fs::create_dir_all(&folder).map_err(|error| failed("a folder for skills cannot be made", error))?;
            let folder = DataFolder::unheld(folder);
            for skill in skills.values() {
                let written = put(&folder, skill, overwrite, &mut report);
                written.map_err(|error| failed(format_args!("the skill `{}` cannot be written", skill.name), error))?;
            }
            Ok(report)
        })
        .await
    }
}

fn put(folder: &DataFolder, skill: &Skill, overwrite: bool, report: &mut ExportReport) -> Result<(), FileError> {
    let name = skill.name.clone();
    let file = SkillFile::of(skill);
    if report.skills.iter().any(|other| other.folder == file.name) {
        report.crowded.push(name);
        return Ok(());
    }
    let outcome = write(folder, &file, overwrite)?;
    report.skills.push(ExportedSkill {
        name,
        folder: file.name,
        outcome,
    });
    Ok(())
}

fn write(folder: &DataFolder, file: &SkillFile, overwrite: bool) -> Result<SkillOutcome, FileError> {
    let name = format!("{}/{}", file.name, walk::FILE);
    let text = file.to_text();
    let outcome = match folder.read(&name, MAX_BYTES) {
        Ok(None) => SkillOutcome::Added,
        Ok(Some(there)) if there == text.as_bytes() => return Ok(SkillOutcome::Unchanged),
        Ok(Some(there)) if overwrite || is_ours(&there) => SkillOutcome::Updated,
        Err(error) if error.is_damage() && overwrite => SkillOutcome::Updated,
        Ok(Some(_)) => return Ok(SkillOutcome::Kept),
        Err(error) if error.is_damage() => return Ok(SkillOutcome::Kept),
        Err(error) => return Err(error),
    };
    match folder.replace(&name, text.as_bytes()) {
        Ok(()) => Ok(outcome),
        // Its folder is a link or a file.
        Err(FileError::NotPlain(_)) => Ok(SkillOutcome::Kept),
        Err(error) => Err(error),
    }
}

/// Returns `true` if an export wrote the file, and it has not been edited since.
fn is_ours(there: &[u8]) -> bool {
    let file = std::str::from_utf8(there)
        .ok()
        .and_then(|text| SkillFile::parse(text).ok());
    file.is_some_and(|file| file.is_ours())
}
