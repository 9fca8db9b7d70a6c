//! Preloading: when a memory is opened, the sessions that are not idle are read in parallel.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::time::{Duration, SystemTime};

use rockbot_core::store::StoreError;

use super::folder::{ConversationFolder, failed};
use super::layout::{self, FileKind, SessionKey};
use super::session::Session;
use super::session_cache::SessionCache;

/// Maximum number of threads that read sessions. Reading is bound by the disk, so more threads do
/// not help.
const MAX_READERS: usize = 8;

/// A session with files that changed within the idle time-out.
struct RecentSession {
    key: SessionKey,
    modified: SystemTime,
    has_log: bool,
}

/// Reads the sessions that are not idle, newest first, up to the capacity of the cache.
pub(super) fn load_recent(folder: &ConversationFolder, cache: &SessionCache) -> Result<(), StoreError> {
    let options = &folder.options;
    let idle = u64::try_from(options.idle_timeout.as_millis()).unwrap_or(u64::MAX);
    let since = options.clock.now().as_millis().saturating_sub(idle);
    let mut recent = recent(folder, since)?;
    recent.truncate(options.max_cached_sessions);
    let readers = std::thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_READERS);
    std::thread::scope(|scope| {
        // At least a few sessions per thread, since starting one costs as much as reading some.
        for chunk in recent.chunks(recent.len().div_ceil(readers).max(MAX_READERS)) {
            scope.spawn(|| chunk.iter().for_each(|session| load(folder, cache, session, since)));
        }
    });
    Ok(())
}

/// Reads a session and caches it if its newest entry is not idle: compaction changes files
/// without a new entry.
fn load(
    folder: &ConversationFolder,
    cache: &SessionCache,
    RecentSession { key, has_log, .. }: &RecentSession,
    since: u64,
) {
    match Session::load_with(folder, key, *has_log) {
        Ok(session) => match session.newest() {
            Some(newest) if newest.as_millis() >= since => cache.insert(key.clone(), session, newest),
            _ => {}
        },
        // Not fatal: the session is read again when it is used, and then its caller gets the error.
        Err(error) => {
            tracing::warn!(%error, session = %key.1, "conversation cannot be preloaded; it is read again when it is used")
        }
    }
}

/// Lists the sessions with files that changed after `since`, latest first, and registers foreign
/// documents.
fn recent(folder: &ConversationFolder, since: u64) -> Result<Vec<RecentSession>, StoreError> {
    let listed = folder
        .files
        .list("")
        .map_err(|error| failed("conversations cannot be listed", error))?;
    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(since);
    let mut foreign = folder.foreign();
    let mut files = BTreeMap::new();
    for entry in listed {
        let Some(file) = layout::parse(&entry.name) else {
            continue;
        };
        if !file.is_native {
            foreign.insert(file.key.1.clone(), entry.name);
        }
        let (modified, has_log) = files.entry(file.key).or_insert((None, false));
        *modified = entry.modified.max(*modified);
        *has_log |= file.kind == FileKind::Log;
    }
    let recent = |(key, (modified, has_log)): (SessionKey, (Option<SystemTime>, bool))| {
        let modified = modified.filter(|modified| *modified >= since)?;
        Some(RecentSession { key, modified, has_log })
    };
    let mut recent: Vec<_> = files.into_iter().filter_map(recent).collect();
    recent.sort_by_key(|session| std::cmp::Reverse(session.modified));
    Ok(recent)
}
