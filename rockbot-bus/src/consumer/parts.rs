//! The parts that the clones of a bus share, whichever broker it uses.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{self, Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Subscriptions;

/// The parts that the clones of a bus share. When the last clone is dropped, the tasks of the bus
/// end.
pub(crate) struct BusParts<P> {
    pub(crate) publisher: P,
    pub(crate) subscriptions: Subscriptions<P>,
    /// Dead letters are inspected by one caller at a time: a message that one looks at is hidden from
    /// the others.
    pub(crate) inspection: Mutex<()>,
    /// Taken by the first call that closes the bus.
    pub(crate) closing: Mutex<()>,
    _guard: DropGuard,
}

impl<P> BusParts<P> {
    /// Creates the parts of an open bus. `closed` is cancelled with them.
    pub(crate) fn new(publisher: P, closed: &CancellationToken) -> Self {
        Self {
            publisher,
            subscriptions: Subscriptions::default(),
            inspection: Mutex::new(()),
            closing: Mutex::new(()),
            _guard: closed.clone().drop_guard(),
        }
    }

    /// Handles waiting messages for half of `within`, then takes no further message and lets the
    /// running handlers end. Returns the number of messages that were not handled.
    pub(crate) async fn drain(&self, within: Duration) -> usize {
        let began = Instant::now();
        let _ = time::timeout(within / 2, self.subscriptions.until_idle()).await;
        let rest = within.saturating_sub(began.elapsed());
        self.subscriptions.end(rest).await
    }
}
