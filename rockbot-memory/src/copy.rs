//! From one store to another, such as from files into a database and back.
//!
//! Each function copies what one principal has, through the traits: from any store to any other. Doing it again after a
//! failure repeats nothing. Members of documents that we do not know stay behind.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use rockbot_core::Principal;
use rockbot_core::store::{ConversationMemory, LongTermMemory, RulesStore, SkillStore, StoreError};

/// How many writes wait for the disk together.
const MAX_CONCURRENT_WRITES: usize = 32;

/// Copies all memories of `principal`, archived ones too, and returns how many. Each takes the place of one with the
/// same id.
///
/// # Errors
///
/// Fails when `from` cannot be read or `to` cannot be written; what was copied before stays.
pub async fn copy_long_term(
    principal: &Principal,
    from: &dyn LongTermMemory,
    to: &dyn LongTermMemory,
) -> Result<usize, StoreError> {
    let entries = from.list(principal).await?;
    let count = entries.len();
    let writes = stream::iter(entries).map(|entry| to.save(principal, Arc::unwrap_or_clone(entry)));
    writes
        .buffer_unordered(MAX_CONCURRENT_WRITES)
        .try_collect::<()>()
        .await?;
    Ok(count)
}

/// Copies all skills of `principal`, and returns how many. Each takes the place of one with the same name.
///
/// # Errors
///
/// Fails as [`copy_long_term`] does.
pub async fn copy_skills(
    principal: &Principal,
    from: &dyn SkillStore,
    to: &dyn SkillStore,
) -> Result<usize, StoreError> {
    let skills = from.list(principal).await?;
    let count = skills.len();
    let writes = stream::iter(skills).map(|skill| to.save(principal, Arc::unwrap_or_clone(skill)));
    writes
        .buffer_unordered(MAX_CONCURRENT_WRITES)
        .try_collect::<()>()
        .await?;
    Ok(count)
}

/// Copies the rules of `principal` in their order, and returns how many were not there yet. A time zone takes the place of
/// the one that is there.
///
/// # Errors
///
/// Fails as [`copy_long_term`] does.
pub async fn copy_rules(
    principal: &Principal,
    from: &dyn RulesStore,
    to: &dyn RulesStore,
) -> Result<usize, StoreError> {
    let mut added = 0;
    for rule in from.list(principal).await? {
        added += usize::from(to.add(principal, rule).await?);
    }
    if let Some(zone) = from.time_zone(principal).await? {
        to.set_time_zone(principal, &zone).await?;
    }
    Ok(added)
}

/// Copies the sessions of `principal` that are not in `to`, as much of each as `to` keeps, and returns how many. Those
/// that are there stay as they are.
///
/// # Errors
///
/// Fails as [`copy_long_term`] does.
pub async fn copy_conversations(
    principal: &Principal,
    from: &dyn ConversationMemory,
    to: &dyn ConversationMemory,
) -> Result<usize, StoreError> {
    let known: BTreeSet<_> = to.sessions(principal).await?.into_iter().collect();
    let mut sessions = from.sessions(principal).await?;
    sessions.retain(|session| !known.contains(session));
    for session in &sessions {
        let turns = from.recent(principal, session, usize::MAX).await?;
        to.append(principal, session, turns).await?;
    }
    Ok(sessions.len())
}
