//! What is entries in memory of each principal.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::Principal;

/// How many principals are entries in memory: what was not used for the longest time gives way.
const MAX_PRINCIPALS: usize = 256;

/// A value for each principal. Everybody who works on a principal at the same time has the same one: it is only taken
/// away while nobody holds it. Nothing is lost with it, since everything is in files.
pub(crate) struct PrincipalCache<T>(Mutex<CacheEntries<T>>);

struct CacheEntries<T> {
    values: HashMap<Principal, (Arc<T>, u64)>,
    last_use: u64,
}

impl<T> Default for PrincipalCache<T> {
    fn default() -> Self {
        Self(Mutex::new(CacheEntries {
            values: HashMap::new(),
            last_use: 0,
        }))
    }
}

impl<T> fmt::Debug for PrincipalCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrincipalCache").finish_non_exhaustive()
    }
}

impl<T: Default> PrincipalCache<T> {
    /// The value of `principal`; a new one is empty.
    pub(crate) fn get_or_default(&self, principal: &Principal) -> Arc<T> {
        // Nothing that can panic runs under the lock.
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last_use += 1;
        let now = entries.last_use;
        if let Some((value, used)) = entries.values.get_mut(principal) {
            *used = now;
            return value.clone();
        }
        entries.make_room();
        let value = Arc::<T>::default();
        entries.values.insert(principal.clone(), (value.clone(), now));
        value
    }
}

impl<T> CacheEntries<T> {
    fn make_room(&mut self) {
        if self.values.len() < MAX_PRINCIPALS {
            return;
        }
        let unused = self
            .values
            .iter()
            .filter(|(_, (value, _))| Arc::strong_count(value) == 1);
        let oldest = unused.min_by_key(|(_, (_, used))| *used);
        if let Some(principal) = oldest.map(|(principal, _)| principal.clone()) {
            self.values.remove(&principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_is_in_use_is_never_taken_away() {
        let cache = PrincipalCache::<AtomicUsize>::default();
        let busy = cache.get_or_default(&"busy".into());
        busy.store(1, Ordering::Relaxed);
        cache.get_or_default(&"idle".into()).store(1, Ordering::Relaxed);
        for other in 0..MAX_PRINCIPALS {
            cache.get_or_default(&other.to_string().into());
        }
        let value = |principal: &str| cache.get_or_default(&principal.into()).load(Ordering::Relaxed);
        assert_eq!((value("busy"), value("idle")), (1, 0));
    }
}
