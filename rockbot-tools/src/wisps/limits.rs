//! The limits of definitions.

/// Maximum number of wisps of one call.
pub(super) const MAX_WISPS: usize = 100;

/// Maximum number of steps of a wisp.
pub(super) const MAX_STEPS: usize = 50;
