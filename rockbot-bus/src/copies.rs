//! The copies of one message that a bus publishes until the broker has confirmed a copy.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of copies of a message that were handed to the broker's client.
///
/// After a lost confirm it is not known whether the broker has the first copy, so every further
/// copy states that it is not the first: two workers may get a copy each, and only one worker may
/// run a mutating call.
#[derive(Debug, Default)]
pub(crate) struct Copies(AtomicU32);

impl Copies {
    /// Counts a copy that is sent now. Returns `true` if it is not the first.
    pub(crate) fn add(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) > 0
    }

    /// Returns `true` if the broker may have more than one copy.
    pub(crate) fn are_several(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}
