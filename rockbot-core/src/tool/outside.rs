//! The entry point to a host's tools for callers outside of it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{ToolEntry, ToolInvokeRequest, ToolInvokeResponse};
use crate::CallContext;
use crate::shared::share;

/// The entry point to a host's tools for callers outside of it, such as the clients of an MCP
/// server.
///
/// A host provides it as a part ([`Parts`](crate::subsystem::Parts)) to each subsystem that
/// starts. A call runs without a turn, and goes the way of every other call: layers, look-up,
/// validation of the arguments, permits, time limit, metrics. The caller of this trait states in
/// the [`CallContext`] on whose behalf it calls and how far that caller is trusted. There is no
/// person to ask: a call that needs an approval or an endorsement fails with
/// [`ApprovalRequired`](super::ToolErrorCode::ApprovalRequired), unless the context has its
/// grant.
#[async_trait]
pub trait OutsideTools: fmt::Debug + Send + Sync + 'static {
    /// Returns the tools, sorted by name, without the tools that only the host's own models use and
    /// the tools whose every call needs an approval.
    fn tools(&self) -> Vec<Arc<ToolEntry>>;

    /// Returns the tool of this name, if it is in [`tools`](Self::tools).
    fn find(&self, name: &str) -> Option<Arc<ToolEntry>>;

    /// Returns a receiver that is notified of every change of the tools.
    fn watch(&self) -> watch::Receiver<u64>;

    /// Calls a tool. Never fails: a failure is a response with `is_error`.
    ///
    /// When the context is cancelled, a call that has begun ends at once, unless it is mutating: its
    /// outcome must be known.
    async fn call(&self, request: ToolInvokeRequest, cx: &CallContext) -> ToolInvokeResponse;
}

share! {
    OutsideTools {
        async call<'a>(request: ToolInvokeRequest, cx: &'a CallContext) -> ToolInvokeResponse;
        fn tools() -> Vec<Arc<ToolEntry>>;
        fn find(name: &str) -> Option<Arc<ToolEntry>>;
        fn watch() -> watch::Receiver<u64>;
    }
}
