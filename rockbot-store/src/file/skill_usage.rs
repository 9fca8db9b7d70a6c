//! Uses of skills in files: [`FileSkillUsageStore`].
//!
//! `{session}.jsonl` has a use in each line; sessions of the principal `local` are in the folder
//! itself, sessions of other principals in `@{principal}/`.

use rockbot_core::store::SkillUsage;

use super::timeline::FileTimeline;
use crate::storage::timeline::StoredEntry;

/// The [`SkillUsageStore`](rockbot_core::store::SkillUsageStore) in files: a [`FileTimeline`] of
/// [`SkillUsage`].
pub type FileSkillUsageStore = FileTimeline<SkillUsage>;

impl StoredEntry for SkillUsage {
    const WHAT: &'static str = "the use of a skill";

    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    const TABLE: &'static str = "skill_usage";
}
