//! The choice of a store.

use std::sync::Arc;

use rockbot_core::BoxError;
use rockbot_core::subsystem::{Declarations, Parts};

/// The choice of a store.
#[derive(Debug)]
pub(super) enum StoreChoice<T: ?Sized> {
    /// The host's store if it has one, else the default store.
    Own,
    /// The given store.
    Given(Arc<T>),
    /// No store: the part is disabled.
    Off,
}

impl<T: ?Sized + Send + Sync + 'static> StoreChoice<T> {
    /// Enables the part if it is disabled.
    pub(super) fn enable(&mut self) {
        if let Self::Off = self {
            *self = Self::Own;
        }
    }

    /// Resolves the choice and provides the store to the host, unless it has one. `open` opens the
    /// default store.
    pub(super) fn resolve(
        &self,
        needs: &mut Declarations,
        open: impl FnOnce(&Parts) -> Result<Arc<T>, BoxError>,
    ) -> Result<Option<Arc<T>>, BoxError> {
        self.resolve_wrapped(needs, open, Ok)
    }

    /// Resolves the choice; the host and this subsystem get the store wrapped by `surround`.
    pub(super) fn resolve_wrapped(
        &self,
        needs: &mut Declarations,
        open: impl FnOnce(&Parts) -> Result<Arc<T>, BoxError>,
        surround: impl FnOnce(Arc<T>) -> Result<Arc<T>, BoxError>,
    ) -> Result<Option<Arc<T>>, BoxError> {
        let part = match (self, needs.parts().get::<T>()) {
            (Self::Off, _) => return Ok(None),
            (Self::Own, Some(part)) => return surround(part).map(Some),
            (Self::Given(part), _) => part.clone(),
            (Self::Own, None) => open(needs.parts())?,
        };
        let part = surround(part)?;
        needs.provide::<T>(part.clone());
        Ok(Some(part))
    }

    /// Returns the store, once the choice is resolved.
    pub(super) fn part(&self, parts: &Parts) -> Option<Arc<T>> {
        match self {
            Self::Off => None,
            Self::Own | Self::Given(_) => parts.get::<T>(),
        }
    }
}
