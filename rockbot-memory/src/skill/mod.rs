//! Skills in files: [`FileSkillStore`], and the log of their uses: [`FileSkillUsageStore`].
//!
//! A skill is one JSON document, `{name}.json`, whose name may be nested; skills of the principal `local` lie in the
//! folder itself, those of others in `@{principal}/`. People may add, change and remove these files. The name of the
//! skill is that of the file; `createdAt`, when it is missing, is the time of the file.
//!
//! Other agents keep skills as folders with a `SKILL.md`: [`SkillFolder`] brings them into any store, and writes them from any.
//!
//! Uses are lines in `{session}.jsonl`, in a folder of their own. In a host they go after 180 days
//! ([`Retention`](crate::Retention)); skills stay until somebody deletes them.

mod document;
mod files;
mod folder;
mod managed_skill;
mod store;
mod usage;

pub(crate) use files::SkillFiles;
pub(crate) use folder::FolderSkill;
pub use folder::{
    ExportOptions, ExportReport, ExportedSkill, ImportReport, ImportedSkill, SkillFileError, SkillFolder, SkipReason,
    SkippedFile,
};
pub(crate) use managed_skill::ManagedSkill;
pub use managed_skill::SkillOutcome;
pub use store::FileSkillStore;
pub use usage::FileSkillUsageStore;
