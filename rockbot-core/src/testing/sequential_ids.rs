//! Ids that a test can foresee.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::IdSource;

/// An [`IdSource`] that returns `id-1`, `id-2` and so on. Copies share the counter.
#[derive(Debug, Clone, Default)]
pub struct SequentialIds(Arc<AtomicU64>);

impl SequentialIds {
    /// Ids from `id-1`.
    pub fn new() -> Self {
        Self::default()
    }
}

impl IdSource for SequentialIds {
    fn next_id(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}
