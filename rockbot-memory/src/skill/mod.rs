//! Skills in files: [`FileSkillStore`], and the log of their uses: [`FileSkillUsageStore`].
//!
//! A skill is one JSON document, `{name}.json`, whose name may be nested; skills of the principal `local` lie in the
//! folder itself, those of others in `@{principal}/`. People may add, change and remove these files. The name of the
//! skill is that of the file; `createdAt`, when it is missing, is the time of the file.
//!
//! Uses are lines in `{session}.jsonl`, in a folder of their own. Nothing is ever removed by itself.

mod document;
mod offer;
mod store;
mod usage;

pub(crate) use offer::{Offer, SkillOutcome};
pub use store::FileSkillStore;
pub use usage::FileSkillUsageStore;
