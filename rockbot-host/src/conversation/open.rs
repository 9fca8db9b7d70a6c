//! Opening: which sessions are read at once.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::time::{Duration, SystemTime};

use rockbot_core::store::StoreError;

use super::folder::{Shelf, failed};
use super::layout::{self, Key, Kind};
use super::resident::Resident;
use super::session::Session;

/// How many threads read sessions.
const MAX_READERS: usize = 8;

/// A session whose files were changed lately.
struct Fresh {
    key: Key,
    modified: SystemTime,
    has_log: bool,
}

/// Reads the sessions that are not idle, as many as are held.
pub(super) fn load_fresh(shelf: &Shelf, resident: &Resident) -> Result<(), StoreError> {
    let options = &shelf.options;
    let idle = u64::try_from(options.idle_timeout.as_millis()).unwrap_or(u64::MAX);
    let since = options.clock.now().as_millis().saturating_sub(idle);
    let mut fresh = fresh(shelf, since)?;
    fresh.truncate(options.resident_sessions);
    let readers = std::thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_READERS);
    std::thread::scope(|scope| {
        for fresh in fresh.chunks(fresh.len().div_ceil(readers).max(MAX_READERS)) {
            scope.spawn(|| fresh.iter().for_each(|fresh| load(shelf, resident, fresh, since)));
        }
    });
    Ok(())
}

/// Its files were changed lately, but what was said may be older.
fn load(shelf: &Shelf, resident: &Resident, Fresh { key, has_log, .. }: &Fresh, since: u64) {
    match Session::load_with(shelf, key, *has_log) {
        Ok(session) => match session.newest() {
            Some(newest) if newest.as_millis() >= since => resident.insert(key.clone(), session, newest),
            _ => {}
        },
        // It is read again when somebody asks for it.
        Err(error) => tracing::warn!(%error, session = %key.1, "a conversation cannot be read"),
    }
}

/// The sessions whose files were changed since then, the latest first. Notes what other programs wrote.
fn fresh(shelf: &Shelf, since: u64) -> Result<Vec<Fresh>, StoreError> {
    let found = shelf
        .folder
        .list("")
        .map_err(|error| failed("conversations cannot be listed", error))?;
    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(since);
    let (mut theirs, mut files) = (shelf.theirs(), BTreeMap::new());
    for found in found {
        let Some(place) = layout::place(&found.name) else {
            continue;
        };
        if !place.is_ours {
            theirs.insert(place.key.1.clone(), found.name);
        }
        let (modified, has_log) = files.entry(place.key).or_insert((None, false));
        *modified = found.modified.max(*modified);
        *has_log |= place.kind == Kind::Log;
    }
    let fresh = |(key, (modified, has_log)): (Key, (Option<SystemTime>, bool))| {
        let modified = modified.filter(|modified| *modified >= since)?;
        Some(Fresh { key, modified, has_log })
    };
    let mut fresh: Vec<_> = files.into_iter().filter_map(fresh).collect();
    fresh.sort_by_key(|fresh| std::cmp::Reverse(fresh.modified));
    Ok(fresh)
}
