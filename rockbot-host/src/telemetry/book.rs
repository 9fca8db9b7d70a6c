//! Meters by a name that users, models or other programs choose.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of names with series of their own; further names share the series of `_other`.
/// The cardinality of a metric must not depend on untrusted input.
const MAX_SERIES: usize = 512;

/// A map from names to their meters.
#[derive(Debug)]
pub(crate) struct MeterBook<M>(Mutex<HashMap<Arc<str>, Arc<M>>>);

impl<M> Default for MeterBook<M> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<M> MeterBook<M> {
    /// Returns the meters of `name`, and creates them with `new` when they are first asked for.
    pub(crate) fn of(&self, name: &str, new: impl FnOnce(&str) -> M) -> Arc<M> {
        // A poisoned lock is usable: `new` may panic before the insert, and leaves the map as it was.
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if book.contains_key(name) || book.len() < MAX_SERIES {
            name
        } else {
            "_other"
        };
        if let Some(meters) = book.get(name) {
            return meters.clone();
        }
        let meters = Arc::new(new(name));
        book.insert(name.into(), meters.clone());
        meters
    }
}
