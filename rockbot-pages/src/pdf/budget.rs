//! The budget of work of one document.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Maximum work on a document: bytes that are decompressed or read, each as often as it is. A
/// document of 5 MiB that a person wrote takes up to half of it.
pub(super) const MAX_WORK: usize = 64 << 20;

/// Maximum time for a document; the allowed work takes a part of it.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Work after which the time is checked, in bytes.
const PIECE: usize = 64 << 10;

/// Maximum size of a decoded stream, in bytes. The rest is left out.
const MAX_STREAM: usize = 16 << 20;

/// The work that a document may still take.
///
/// A PDF can refer to the same bytes any number of times, and compress them a thousandfold, so
/// limits of single streams do not bound the whole. Every byte that is read or decompressed is
/// therefore paid from one budget.
#[derive(Debug)]
pub(super) struct Budget {
    left: Cell<usize>,
    is_exceeded: Cell<bool>,
    end: Instant,
}

impl Budget {
    /// Creates a budget for work on `bytes` bytes, which ends in 10 seconds.
    pub(super) fn new(bytes: usize) -> Self {
        Self::within(bytes, MAX_TIME)
    }

    /// Creates a budget for work on `bytes` bytes, which ends after this time.
    pub(super) fn within(bytes: usize, time: Duration) -> Self {
        Self {
            left: Cell::new(bytes),
            is_exceeded: Cell::new(false),
            end: Instant::now() + time,
        }
    }

    /// Pays for work on `bytes` bytes. Returns `false` if the budget does not allow it; nothing else
    /// is then allowed either.
    pub(super) fn spend(&self, bytes: usize) -> bool {
        let before = self.left.get();
        let is_in_time = |left: &usize| left / PIECE == before / PIECE || Instant::now() < self.end;
        let left = before.checked_sub(bytes).filter(is_in_time);
        self.left.set(left.unwrap_or(0));
        self.is_exceeded.set(self.is_exceeded.get() || left.is_none());
        left.is_some()
    }

    /// Returns the number of bytes that may still be worked on.
    pub(super) fn left(&self) -> usize {
        self.left.get()
    }

    /// Returns the maximum size of bytes to decompress for a caller that goes on to read them:
    /// reading has its price, too.
    pub(super) fn room(&self) -> usize {
        MAX_STREAM.min(self.left() / 2)
    }

    /// Records that something was left out.
    pub(super) fn exceed(&self) {
        self.is_exceeded.set(true);
    }

    /// Returns `true` if something was left out.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }
}
