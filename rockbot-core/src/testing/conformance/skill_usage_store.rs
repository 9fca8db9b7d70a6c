//! The conformance suite of [`SkillUsageStore`].

use super::timeline::timeline;
use crate::Timestamp;
use crate::store::{SkillUsage, SkillUsageStore, StorePath};

/// Checks that the stores that `make` creates keep the contract of [`SkillUsageStore`].
///
/// # Panics
///
/// Panics if a part of the contract is broken, with the part that is.
pub async fn skill_usage_store<S: SkillUsageStore>(make: impl AsyncFn() -> S) {
    let usage = |session: &str, millis| SkillUsage {
        id: format!("u{millis}"),
        skill_name: StorePath::new("mcp/email").expect("the name is a path"),
        session_id: session.into(),
        timestamp: Timestamp::from_millis(millis),
    };
    timeline(make, usage).await;
}
