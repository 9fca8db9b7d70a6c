//! One call of a client: its context, its progress, its cancellation.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use rockbot_core::context::{Origin, ProgressListener, ProgressReporter, Trust};
use rockbot_core::tool::{OutsideTools, ToolInvokeRequest, ToolInvokeResponse};
use rockbot_core::{CallContext, Principal, TraceContext};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The conversation of all calls.
const SESSION: &str = "mcp";

/// Number of reports that wait for the client. A tool that reports faster loses reports.
const MAX_REPORTS: usize = 16;

/// Time limit for sending the last reports before the result.
const LAST_REPORTS: Duration = Duration::from_secs(1);

/// On whose behalf calls are made.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) principal: Principal,
    pub(super) trust: Trust,
}

/// Runs a call, and reports its progress to the client if it asked for that.
pub(super) async fn run(
    tools: &dyn OutsideTools,
    request: ToolInvokeRequest,
    caller: &Caller,
    cx: &RequestContext<RoleServer>,
) -> ToolInvokeResponse {
    let request = request.with_session_id(SESSION);
    let call = context(caller, cx);
    let Some(token) = cx.meta.get_progress_token() else {
        return tools.call(request, &call).await;
    };
    let (sender, reports) = mpsc::channel(MAX_REPORTS);
    let call = call.with_progress(ProgressReporter::new(Arc::new(Listener(sender))));
    let mut reports = Reports {
        waiting: reports,
        peer: cx.peer.clone(),
        token,
        sent: 0,
    };
    let mut calling = pin!(tools.call(request, &call));
    let response = tokio::select! {
        // In order: a report that is there goes before the result.
        biased;
        // Cancel point: at most the report that is being sent is lost.
        () = reports.forward() => calling.await,
        response = &mut calling => response,
    };
    // The client may have stopped to read.
    let _ = timeout(LAST_REPORTS, reports.drain()).await;
    response
}

/// Returns the context of a call. The text that the client's model has read is unknown.
fn context(caller: &Caller, cx: &RequestContext<RoleServer>) -> CallContext {
    let call = CallContext::new(SESSION)
        .with_principal(caller.principal.clone())
        .with_origin(Origin::Bus)
        .with_trust(caller.trust)
        .with_content_trust(caller.trust)
        .with_cancellation(cx.ct.clone());
    match cx.meta.get_traceparent().and_then(TraceContext::parse) {
        Some(trace) => call.with_trace(trace.child()),
        None => call,
    }
}

/// Takes the reports of a tool; reports that find no room are dropped.
struct Listener(mpsc::Sender<String>);

impl ProgressListener for Listener {
    fn tool_progress(&self, text: String) {
        // A slow client must not hold up the tool.
        let _ = self.0.try_send(text);
    }
}

/// The reports of a call on their way to the client.
struct Reports {
    waiting: mpsc::Receiver<String>,
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// Number of the reports that were sent: their progress, which must increase.
    sent: u32,
}

impl Reports {
    /// Sends reports until the tool can report no more.
    async fn forward(&mut self) {
        while let Some(text) = self.waiting.recv().await {
            self.send(text).await;
        }
    }

    /// Sends the reports that wait.
    async fn drain(&mut self) {
        while let Ok(text) = self.waiting.try_recv() {
            self.send(text).await;
        }
    }

    async fn send(&mut self, text: String) {
        self.sent += 1;
        let report = ProgressNotificationParam::new(self.token.clone(), f64::from(self.sent)).with_message(text);
        // A client that is gone gets no result either.
        let _ = self.peer.notify_progress(report).await;
    }
}
