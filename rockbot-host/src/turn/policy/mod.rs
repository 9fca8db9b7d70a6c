//! The rules of a turn, one file each: small functions of plain values.

pub(super) mod answer;
pub(super) mod approval;
pub(super) mod budget;
pub(super) mod compact;
pub(super) mod elide;
pub(super) mod ending;
pub(super) mod escalate;
pub(super) mod evaluate;
pub(super) mod follow_up;
pub(super) mod identity;
pub(super) mod nudge;
pub(super) mod parallel;
pub(super) mod repeat;
pub(super) mod resume;
pub(super) mod steer;
pub(crate) mod tasks;
pub(super) mod token_estimate;

pub use compact::{Compaction, Elision};
pub(crate) use escalate::higher;
pub use evaluate::{Evaluation, Trigger};
pub use nudge::{Nudge, Nudges};
pub(crate) use resume::{outcome_unknown, uncertain};
