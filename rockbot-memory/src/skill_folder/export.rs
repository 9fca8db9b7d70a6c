//! From a store into a folder.

use std::collections::BTreeMap;

use rockbot_core::Principal;
use rockbot_core::files::{DataFolder, FileError};
use rockbot_core::store::{Skill, SkillStore, StoreError, StorePath};

use super::document::SkillFile;
use super::managed_skill::SkillOutcome;
use super::{SkillFolder, walk};
use crate::storage::blocking::{blocking, failed};

/// The longest file that can be one of ours, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// What is exported, and what for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportOptions {
    /// Which skills; `None`, the default, is all of them.
    pub names: Option<Vec<StorePath>>,
    /// Whether files that we did not write, or that somebody changed since, are replaced. Default: they stay.
    pub overwrite: bool,
}

/// What became of skills that were exported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportReport {
    /// The skills that have a file now, in the order of their names.
    pub skills: Vec<ExportedSkill>,
    /// Names of which there is no skill.
    pub missing: Vec<StorePath>,
    /// Skills whose folder another one has, since their names become the same as the format allows them.
    pub crowded: Vec<StorePath>,
}

/// A skill in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedSkill {
    /// What it is called here.
    pub name: StorePath,
    /// The folder in which it lies, and its name there.
    pub folder: String,
    /// What became of its file.
    pub outcome: SkillOutcome,
}

impl SkillFolder {
    /// Writes skills of `principal` into the folder, which is made if it is missing: one folder each, with a name that the
    /// format allows. `mcp/email` becomes `mcp-email`, and notes what it was, so that an import gives it its name again. A
    /// skill without a summary is described by its first line. Ages, uses and related skills stay behind.
    ///
    /// A file that is there is replaced when it came from an export and nobody has changed it. A link in its place is replaced
    /// only with [`ExportOptions::overwrite`], one in the place of its folder never; none is followed.
    ///
    /// # Errors
    ///
    /// Fails when the store cannot be read and when the folder cannot be written; what was written before stays.
    pub async fn export(
        &self,
        principal: &Principal,
        from: &dyn SkillStore,
        options: &ExportOptions,
    ) -> Result<ExportReport, StoreError> {
        let skills = from.list(principal).await?.into_iter();
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
        let (folder, overwrite) = (self.path.clone(), options.overwrite);
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
    let (name, file) = (skill.name.clone(), SkillFile::of(skill));
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
    let (name, text) = (format!("{}/{}", file.name, walk::FILE), file.to_text());
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

/// Whether an export wrote it, and nobody has changed it since.
fn is_ours(there: &[u8]) -> bool {
    let file = std::str::from_utf8(there)
        .ok()
        .and_then(|text| SkillFile::parse(text).ok());
    file.is_some_and(|file| file.is_ours())
}
