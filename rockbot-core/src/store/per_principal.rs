//! State per principal behind one lock, shared by the in-memory stores.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Principal;

#[derive(Debug, Default)]
pub(super) struct PerPrincipal<T>(Mutex<BTreeMap<Principal, T>>);

impl<T: Default> PerPrincipal<T> {
    /// Reads the value of `principal`; a value that was never written is empty.
    pub(super) fn read<R>(&self, principal: &Principal, read: impl FnOnce(&T) -> R) -> R {
        match self.lock().get(principal) {
            Some(value) => read(value),
            None => read(&T::default()),
        }
    }

    /// Changes the value of `principal`.
    pub(super) fn write<R>(&self, principal: &Principal, write: impl FnOnce(&mut T) -> R) -> R {
        write(self.lock().entry(principal.clone()).or_default())
    }

    /// Changes the values of all principals.
    pub(super) fn write_all<R>(&self, write: impl FnMut(&mut T) -> R) -> Vec<R> {
        self.lock().values_mut().map(write).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Principal, T>> {
        // No code that can panic runs under the lock, so a poisoned lock still guards consistent data.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
