//! Meters by a name that comes from outside.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many names have series of their own; further ones share those of `_other`. A metrics store must not grow with
/// what others think up.
const MAX_SERIES: usize = 512;

/// The meters of each name.
#[derive(Debug)]
pub(crate) struct MeterBook<M>(Mutex<HashMap<Arc<str>, Arc<M>>>);

impl<M> Default for MeterBook<M> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<M> MeterBook<M> {
    /// The meters of `name`; `new` makes those of a name.
    pub(crate) fn of(&self, name: &str, new: impl FnOnce(&str) -> M) -> Arc<M> {
        // No code that can panic runs under the lock.
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = match book.contains_key(name) || book.len() < MAX_SERIES {
            true => name,
            false => "_other",
        };
        if let Some(meters) = book.get(name) {
            return meters.clone();
        }
        let meters = Arc::new(new(name));
        book.insert(name.into(), meters.clone());
        meters
    }
}
