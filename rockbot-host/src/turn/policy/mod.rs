//! The rules of a turn, one file each: small functions of plain values.

pub(super) mod answer;
pub(super) mod approval;
pub(super) mod budget;
pub(super) mod ending;
pub(super) mod identity;
pub(super) mod parallel;
pub(super) mod resume;
pub(super) mod steer;

pub(crate) use resume::{outcome_unknown, uncertain};
