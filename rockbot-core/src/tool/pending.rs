//! Tools that arrive after a host has started.

use std::fmt;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::context::WaitReason;

/// Tools that are on their way to the registry of a host, such as the tools of servers that are
/// being connected.
///
/// A subsystem provides it as a part. A turn that begins waits for them, so that the first
/// question after a start has its tools; the wait ends at the moment that the subsystem states,
/// when the turn is cancelled, and when the host stops.
///
/// ```
/// use async_trait::async_trait;
/// use rockbot_core::context::WaitReason;
/// use rockbot_core::tool::{AwaitedTools, PendingTools};
/// use tokio::sync::watch;
/// use tokio::time::Instant;
///
/// /// Waits for the tools of a device until a deadline.
/// #[derive(Debug)]
/// struct Device { is_ready: watch::Sender<bool>, deadline: Instant }
///
/// #[async_trait]
/// impl PendingTools for Device {
///     fn awaited(&self) -> Option<AwaitedTools> {
///         let awaited = || AwaitedTools::new(self.deadline, WaitReason::Servers(vec!["device".to_owned()]));
///         (!*self.is_ready.borrow()).then(awaited)
///     }
///
///     async fn arrived(&self) {
///         // It fails if the device is gone: no tool comes any more.
///         let _ = self.is_ready.subscribe().wait_for(|is_ready| *is_ready).await;
///     }
/// }
/// ```
#[async_trait]
pub trait PendingTools: fmt::Debug + Send + Sync + 'static {
    /// Returns the wait of a turn that begins now; `None` if it waits for no tool. It is called for
    /// each turn and must not block.
    fn awaited(&self) -> Option<AwaitedTools>;

    /// Waits until no tool is on its way.
    ///
    /// Cancel safety: dropping the future loses nothing.
    async fn arrived(&self);
}

/// The wait of a turn for [tools](PendingTools) that are on their way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AwaitedTools {
    /// Moment when the turn begins without them.
    pub until: Instant,
    /// Reason that the user is told.
    pub why: WaitReason,
}

impl AwaitedTools {
    /// Creates the wait.
    pub fn new(until: Instant, why: WaitReason) -> Self {
        Self { until, why }
    }
}
