//! What is held in memory of each principal.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::Principal;

/// How many principals are held in memory: what was not used for the longest time gives way.
const LIMIT: usize = 256;

/// A value for each principal. Everybody who works on a principal at the same time has the same one: it is only taken
/// away while nobody holds it. Nothing is lost with it, since everything is in files.
pub(crate) struct Residents<T>(Mutex<Held<T>>);

struct Held<T> {
    values: HashMap<Principal, (Arc<T>, u64)>,
    last_use: u64,
}

impl<T> Default for Residents<T> {
    fn default() -> Self {
        Self(Mutex::new(Held {
            values: HashMap::new(),
            last_use: 0,
        }))
    }
}

impl<T> fmt::Debug for Residents<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Residents").finish_non_exhaustive()
    }
}

impl<T: Default> Residents<T> {
    /// The value of `principal`; a new one is empty.
    pub(crate) fn of(&self, principal: &Principal) -> Arc<T> {
        // Nothing that can panic runs under the lock.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.last_use += 1;
        let now = held.last_use;
        if let Some((value, used)) = held.values.get_mut(principal) {
            *used = now;
            return value.clone();
        }
        held.make_room();
        let value = Arc::<T>::default();
        held.values.insert(principal.clone(), (value.clone(), now));
        value
    }
}

impl<T> Held<T> {
    fn make_room(&mut self) {
        if self.values.len() < LIMIT {
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
        let residents = Residents::<AtomicUsize>::default();
        let busy = residents.of(&"busy".into());
        busy.store(1, Ordering::Relaxed);
        residents.of(&"idle".into()).store(1, Ordering::Relaxed);
        for other in 0..LIMIT {
            residents.of(&other.to_string().into());
        }
        let value = |principal: &str| residents.of(&principal.into()).load(Ordering::Relaxed);
        assert_eq!((value("busy"), value("idle")), (1, 0));
    }
}
