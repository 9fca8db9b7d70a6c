//! Opening: which sessions are read at once.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::time::{Duration, SystemTime};

use rockbot_core::store::StoreError;

use super::folder::{ConversationFolder, failed};
use super::layout::{self, FileKind, SessionKey};
use super::session::Session;
use super::session_cache::SessionCache;

/// How many threads read sessions.
const MAX_READERS: usize = 8;

/// A session whose files were changed lately.
struct RecentSession {
    key: SessionKey,
    modified: SystemTime,
    has_log: bool,
}

/// Reads the sessions that are not idle, as many as are held.
pub(super) fn load_recent(folder: &ConversationFolder, cache: &SessionCache) -> Result<(), StoreError> {
    let options = &folder.options;
    let idle = u64::try_from(options.idle_timeout.as_millis()).unwrap_or(u64::MAX);
    let since = options.clock.now().as_millis().saturating_sub(idle);
    let mut fresh = fresh(folder, since)?;
    fresh.truncate(options.max_cached_sessions);
    let readers = std::thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_READERS);
    std::thread::scope(|scope| {
        for fresh in fresh.chunks(fresh.len().div_ceil(readers).max(MAX_READERS)) {
            scope.spawn(|| fresh.iter().for_each(|fresh| load(folder, cache, fresh, since)));
        }
    });
    Ok(())
}

/// Its files were changed lately, but what was said may be older.
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
        // It is read again when somebody asks for it.
        Err(error) => tracing::warn!(%error, session = %key.1, "a conversation cannot be read"),
    }
}

/// The sessions whose files were changed since then, the latest first. Notes what other programs wrote.
fn fresh(folder: &ConversationFolder, since: u64) -> Result<Vec<RecentSession>, StoreError> {
    let found = folder
        .files
        .list("")
        .map_err(|error| failed("conversations cannot be listed", error))?;
    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(since);
    let (mut foreign, mut files) = (folder.foreign(), BTreeMap::new());
    for found in found {
        let Some(place) = layout::place(&found.name) else {
            continue;
        };
        if !place.is_ours {
            foreign.insert(place.key.1.clone(), found.name);
        }
        let (modified, has_log) = files.entry(place.key).or_insert((None, false));
        *modified = found.modified.max(*modified);
        *has_log |= place.kind == FileKind::Log;
    }
    let fresh = |(key, (modified, has_log)): (SessionKey, (Option<SystemTime>, bool))| {
        let modified = modified.filter(|modified| *modified >= since)?;
        Some(RecentSession { key, modified, has_log })
    };
    let mut fresh: Vec<_> = files.into_iter().filter_map(fresh).collect();
    fresh.sort_by_key(|fresh| std::cmp::Reverse(fresh.modified));
    Ok(fresh)
}
