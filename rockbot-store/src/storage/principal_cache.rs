//! An LRU cache of per-principal state.
//!
//! A host may serve any number of principals, so the memory that a store keeps for each is
//! bounded. An evicted value is built from the files again when it is needed next.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::Principal;

/// Maximum number of cached principals, exceeded only while more than these are in use at the
/// same time.
const MAX_PRINCIPALS: usize = 256;

/// An LRU cache with one shared value for each principal.
///
/// Concurrent callers of one principal share the same value, which may hold the lock that
/// serializes them; therefore a value is evicted only while no caller holds it. Eviction loses
/// nothing, because the files hold everything.
pub struct PrincipalCache<T>(Mutex<CacheEntries<T>>);

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
    /// Returns the value of `principal`, inserting the default and evicting the least recently used
    /// idle value if needed.
    pub fn get_or_default(&self, principal: &Principal) -> Arc<T> {
        // The lock covers map operations only; building a value is left to the caller. No code that can
        // panic runs under it, so a poisoned lock is still consistent.
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
    /// Evicts the least recently used value that no caller holds. The scan is linear, but runs only
    /// for a principal that is not cached.
    fn make_room(&mut self) {
        if self.values.len() < MAX_PRINCIPALS {
            return;
        }
        let unused = self
            .values
            .iter()
            .filter(|(_, (value, _))| Arc::strong_count(value) == 1);
        // A count of 1 cannot grow here: clones are made under this lock, or from a clone that does not
        // exist.
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
    fn a_value_in_use_is_never_evicted() {
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
