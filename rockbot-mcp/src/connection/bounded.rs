//! A transport that wraps another transport and bounds a server's demands on this process.
//!
//! The client library starts a task for each notification and request that it receives. Here a
//! flood ends before that: announcements of changes are merged into one signal, log messages are
//! left out, and any other message that comes faster than the limit is dropped.
//!
//! The notifications of a server are bounded in the transport: the client library starts a task
//! for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rockbot_core::context::CancellationToken;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Number of messages of a server's own that pass at once.
const BURST: u32 = 64;

/// Interval until a further message passes.
const REFILL: Duration = Duration::from_millis(20);

/// The signals of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals {
    /// The server's tools have changed.
    pub(crate) tools_changed: Arc<Notify>,
    /// The connection is over: the server closed it, or it was dropped.
    pub(crate) closed: CancellationToken,
    /// A call was not answered in time: the server may hang.
    pub(crate) is_suspect: Arc<Notify>,
    /// Number of messages that came.
    heard: Arc<AtomicU64>,
}

impl Signals {
    /// Returns the number of messages that have come from the server.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }
}

/// The transport.
pub(crate) struct Bounded<T> {
    inner: T,
    server: Arc<str>,
    signals: Signals,
    left: u32,
    refilled: Instant,
    dropped: u64,
}

/// The name of a server and the signals of a connection to it.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    pub(super) server: Arc<str>,
    pub(super) signals: Signals,
}

impl Bounds {
    /// Creates a transport around another transport.
    pub(super) fn around<T>(&self, inner: T) -> Bounded<T> {
        Bounded {
            inner,
            server: self.server.clone(),
            signals: self.signals.clone(),
            left: BURST,
            refilled: Instant::now(),
            dropped: 0,
        }
    }
}

impl<T> Bounded<T> {
    /// Returns the message if the client library is to see it.
    fn admit(&mut self, message: RxJsonRpcMessage<RoleClient>) -> Option<RxJsonRpcMessage<RoleClient>> {
        match &message {
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => return Some(message),
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ToolListChangedNotification(_) => {
                    self.signals.tools_changed.notify_one();
                    return None;
                }
                ServerNotification::SubscriptionsAcknowledgedNotification(_)
                | ServerNotification::CancelledNotification(_)
                | ServerNotification::ProgressNotification(_) => {}
                _ => return None,
            },
            JsonRpcMessage::Request(_) => {}
        }
        self.take().then_some(message)
    }

    /// Takes a permit for a message; returns `false` if none is left.
    fn take(&mut self) -> bool {
        let refill = self.refilled.elapsed().as_micros() / REFILL.as_micros();
        if refill > 0 {
            self.left = self
                .left
                .saturating_add(u32::try_from(refill).unwrap_or(BURST))
                .min(BURST);
            self.refilled = Instant::now();
        }
        if self.left == 0 {
            self.dropped += 1;
            if self.dropped.is_power_of_two() {
                let dropped = self.dropped;
                tracing::warn!(server = %self.server, dropped, "an MCP server sends too much: messages are dropped");
            }
            return false;
        }
        self.left -= 1;
        true
    }
}

impl<T> Drop for Bounded<T> {
    fn drop(&mut self) {
        self.signals.closed.cancel();
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(message) = self.inner.receive().await else {
                self.signals.closed.cancel();
                return None;
            };
            self.signals.heard.fetch_add(1, Ordering::Relaxed);
            if let Some(message) = self.admit(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.signals.closed.cancel();
        self.inner.close()
    }
}
