//! Where one thing is kept.

use std::sync::Arc;

use rockbot_core::BoxError;
use rockbot_core::subsystem::{Declarations, Parts};

/// Which store is used.
#[derive(Debug)]
pub(super) enum StoreChoice<T: ?Sized> {
    /// The host's, if it was given one; else one of our own.
    Own,
    /// This one.
    Given(Arc<T>),
    /// None: there is nothing of it.
    Off,
}

impl<T: ?Sized + Send + Sync + 'static> StoreChoice<T> {
    /// The store, which the host is given unless it has it. `open` opens our own.
    pub(super) fn resolve(
        &self,
        needs: &mut Declarations,
        open: impl FnOnce(&Parts) -> Result<Arc<T>, BoxError>,
    ) -> Result<Option<Arc<T>>, BoxError> {
        self.resolve_wrapped(needs, open, Ok)
    }

    /// The same, but everybody who comes to it by us gets what `surround` makes of it.
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

    /// The store, once it is settled.
    pub(super) fn part(&self, parts: &Parts) -> Option<Arc<T>> {
        match self {
            Self::Off => None,
            Self::Own | Self::Given(_) => parts.get::<T>(),
        }
    }
}
