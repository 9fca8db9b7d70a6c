//! Copies memory from one store to another, for example from files into a database.
//!
//! Each function copies the entries of one principal through the traits, so any store can be
//! source or destination. They are idempotent: repeating a copy after a failure duplicates
//! nothing. Unknown members of documents are not copied.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use rockbot_core::content::{MediaPart, MediaSource};
use rockbot_core::store::{
    ConversationMemory, ConversationTurn, LongTermMemory, MediaStore, RulesStore, SkillStore, StoreError,
    TimelineEntry, TimelineStore,
};
use rockbot_core::{Principal, Timestamp};

/// Maximum number of concurrent writes, which share a group commit.
const MAX_CONCURRENT_WRITES: usize = 32;

/// Copies all memories of `principal`, archived ones included, and returns their number. Each
/// replaces an entry with the same id.
///
/// # Errors
///
/// Returns an error if `from` cannot be read or `to` cannot be written; entries copied before stay.
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

/// Copies all skills of `principal`, and returns their number. Each replaces a skill with the
/// same name.
///
/// # Errors
///
/// Returns the errors of [`copy_long_term`].
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

/// Copies the rules of `principal` in their order, and returns the number of new ones. A time
/// zone replaces the existing one.
///
/// # Errors
///
/// Returns the errors of [`copy_long_term`].
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

/// Copies the sessions of `principal` that are not in `to`, as much of each as `to` keeps, and
/// returns their number. Existing sessions stay unchanged.
///
/// # Errors
///
/// Returns the errors of [`copy_long_term`].
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

/// Copies the entries of `principal` that are not in `to`, such as feedback, and returns their
/// number.
///
/// # Errors
///
/// Returns the errors of [`copy_long_term`].
pub async fn copy_timeline<T: TimelineEntry + PartialEq>(
    principal: &Principal,
    from: &dyn TimelineStore<T>,
    to: &dyn TimelineStore<T>,
) -> Result<usize, StoreError> {
    let all = async |store: &dyn TimelineStore<T>| {
        let begin = Timestamp::default();
        store.query_recent(principal, begin, usize::MAX).await
    };
    let mut known = all(to).await?;
    let mut copied = 0;
    for entry in all(from).await? {
        // Equal entries are as many as there were.
        if let Some(index) = known.iter().position(|known| *known == entry) {
            known.swap_remove(index);
        } else {
            to.append(principal, entry).await?;
            copied += 1;
        }
    }
    Ok(copied)
}

/// Copies the images and files that the conversations of `principal` show, and returns their
/// number. Media that are gone are left out.
///
/// # Errors
///
/// Returns the errors of [`copy_long_term`].
pub async fn copy_media(
    principal: &Principal,
    conversations: &dyn ConversationMemory,
    from: &dyn MediaStore,
    to: &dyn MediaStore,
) -> Result<usize, StoreError> {
    let mut digests = BTreeSet::new();
    for session in conversations.sessions(principal).await? {
        let entries = conversations.recent(principal, &session, usize::MAX).await?;
        let stored = entries.iter().flat_map(media_of).filter_map(|part| match &part.source {
            MediaSource::Stored(stored) => Some(stored.digest),
            _ => None,
        });
        digests.extend(stored);
    }
    let mut copied = 0;
    for digest in digests {
        if let Some(bytes) = from.get(principal, &digest).await? {
            to.put(principal, bytes).await?;
            copied += 1;
        }
    }
    Ok(copied)
}

/// Returns the media of an entry, and of the results of its calls.
fn media_of(entry: &ConversationTurn) -> impl Iterator<Item = &MediaPart> {
    let calls = entry.rounds.iter().flat_map(|round| &round.calls);
    let results = calls.flat_map(|call| call.result.media());
    entry.content.media().chain(results)
}
