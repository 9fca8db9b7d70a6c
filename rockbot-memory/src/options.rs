//! How stores in files are kept.

use std::sync::Arc;

use rockbot_core::{Clock, SystemClock};

/// How a store in files is kept.
#[derive(Debug, Clone)]
pub struct FileOptions {
    /// The clock by which the store looks for changes by others, and by which entries expire. Default: the system's.
    pub clock: Arc<dyn Clock>,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
        }
    }
}
