//! The answers to a client's requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use rockbot_core::IdSource;
use rockbot_core::context::CancellationToken;
use rockbot_core::store::MediaStore;
use rockbot_core::support::one_line;
use rockbot_core::tool::{OutsideTools, ToolInvokeRequest};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::call::{self, Caller};
use super::listing;
use super::result::result_of;
use super::selection::Selection;

/// Maximum number of calls of all clients that run at once; a further call is refused.
pub(super) const MAX_CALLS: usize = 64;

/// Time for merging changes of the tools into one notification.
const MERGED: Duration = Duration::from_millis(200);

/// Interval of the looks whether a client is still there.
const LOOK: Duration = Duration::from_secs(30);

/// A handler of one client's requests. All handlers of a server share the served tools.
#[derive(Clone)]
pub(super) struct Handler(Arc<Served>);

/// The parts that all handlers of a server share.
pub(super) struct Served {
    pub(super) tools: Arc<dyn OutsideTools>,
    pub(super) media: Option<Arc<dyn MediaStore>>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) selection: Selection,
    pub(super) caller: Caller,
    pub(super) max_text: usize,
    /// [`MAX_CALLS`] of them.
    pub(super) permits: Semaphore,
    pub(super) name: String,
    pub(super) instructions: Option<String>,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
}

impl Handler {
    pub(super) fn new(served: Served) -> Self {
        Self(Arc::new(served))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let server = Implementation::new(self.0.name.as_str(), env!("CARGO_PKG_VERSION"));
        let config = ServerConfig::new(capabilities).with_server_info(server);
        match &self.0.instructions {
            Some(text) => config.with_instructions(text.as_str()),
            None => config,
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        Ok(listing::page(&*self.0.tools, &self.0.selection, cursor.as_deref()))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let served = &self.0;
        let found = served.tools.find(&params.name);
        if !found.is_some_and(|entry| served.selection.takes(entry.registration())) {
            let message = format!("Unknown tool: {}", one_line(&params.name));
            return Err(ErrorData::invalid_params(message, None));
        }
        let Ok(_permit) = served.permits.try_acquire() else {
            let busy = ContentBlock::text("not run: too many calls run at once; try again in a moment");
            return Ok(CallToolResult::error(vec![busy]).into());
        };
        // The host waits for it when it stops: the protocol library's own task is not the host's.
        let _running = served.tasks.token();
        let arguments = serde_json::Value::Object(params.arguments.unwrap_or_default()).to_string();
        let request = ToolInvokeRequest::new(served.ids.next_id(), &*params.name, arguments);
        let response = call::run(&*served.tools, request, &served.caller, &cx).await;
        let principal = &served.caller.principal;
        let media = served.media.as_deref();
        Ok(result_of(response, served.max_text, principal, media).await.into())
    }

    /// Tells the client of changes until it is gone: clients of today's protocol ask for that by a
    /// request instead.
    async fn on_initialized(&self, cx: NotificationContext<RoleServer>) {
        let changes = self.0.tools.watch();
        let stop = self.0.stop.clone();
        self.0.tasks.spawn(async move {
            stop.run_until_cancelled(tell(cx.peer, changes)).await;
        });
    }

    fn accepted_subscription_filter(&self, _: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, cx: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.tools.watch();
        let telling = async {
            while changes.changed().await.is_ok() {
                merge(&mut changes).await;
                if cx.sink().notify_tool_list_changed().await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            () = cx.cancelled() => {}
            () = self.0.stop.cancelled() => {}
            () = telling => {}
        }
        Ok(())
    }
}

/// Tells a client of each change, until it is gone.
async fn tell(peer: Peer<RoleServer>, mut changes: watch::Receiver<u64>) {
    while !peer.is_transport_closed() {
        let Ok(changed) = timeout(LOOK, changes.changed()).await else {
            continue;
        };
        merge(&mut changes).await;
        if changed.is_err() || peer.notify_tool_list_changed().await.is_err() {
            break;
        }
    }
}

/// Merges changes that follow at once with the change before.
async fn merge(changes: &mut watch::Receiver<u64>) {
    sleep(MERGED).await;
    changes.borrow_and_update();
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}
