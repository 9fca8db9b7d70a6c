//! The entry point to tools: spans and the user's layers around the guard.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rockbot_core::content::Provenance;
use rockbot_core::support::{caught, loggable, run_until_stopped};
use rockbot_core::tool::{
    Effect, Recovery, ToolError, ToolFilter, ToolInvocation, ToolInvokeRequest, ToolInvokeResponse, ToolRegistry,
    ToolView,
};
use rockbot_core::trust::{Label, Trust};
use rockbot_core::turn::ValueOrigin;
use rockbot_core::{BoxError, CallContext, ToolName};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{Instrument as _, Span};

use super::ToolLimits;
use super::activation::Activated;
use super::guard::{Guard, GuardedTool, panicked};
use super::span::{CallSpan, span};
use crate::isolate::{Isolate, Isolated};
use crate::layer::{Layers, Stack, call};
use crate::telemetry::Traces;
use crate::turn::CallFacts;

/// Maximum time of the layers around a call without a deadline, besides the time limit of its
/// tool. A rate limit may make a call wait long.
const MAX_LAYER_TIME: Duration = Duration::from_secs(60 * 60);

/// Maximum time to wait for the tool of an interrupted call.
const ARRIVAL_TIME: Duration = Duration::from_secs(5);

/// Time that layers have to pass on the end of a call.
const LAYER_GRACE: Duration = Duration::from_secs(1);

/// The tools that a turn has: the tools that its filter allows, or all.
pub(crate) type TurnTools<'a> = Option<&'a Arc<ToolFilter>>;

/// The dispatcher of tool calls: the only way from a name and arguments to a response, for every
/// entry point.
///
/// A call goes through the user's layers, and then through one fused guard: look the tool up,
/// check the grant and the arguments, wait for a permit, run under the time limit, catch panics,
/// measure. Every failure is a response that the model can act on.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use rockbot_core::CallContext;
/// use rockbot_core::tool::{InMemoryToolRegistry, ToolErrorCode, ToolInvokeRequest};
/// use rockbot_host::tool::{ToolDispatcher, ToolLimits};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let tools = ToolDispatcher::new(Arc::new(InMemoryToolRegistry::new()), ToolLimits::default());
/// let request = ToolInvokeRequest::new("call-1", "weather", "{}").with_session_id("session-1");
/// let response = tools.call(request, &CallContext::new("session-1")).await;
/// assert_eq!(response.code, Some(ToolErrorCode::ToolNotFound));
/// # }
/// ```
#[derive(Debug)]
pub struct ToolDispatcher {
    guard: Arc<Guard>,
    stack: Option<Stack<ToolInvocation, ToolInvokeResponse>>,
    captures_content: bool,
    traces: Traces,
}

impl ToolDispatcher {
    /// Creates a dispatcher that calls the tools of `registry` within `limits`.
    pub fn new(registry: Arc<dyn ToolRegistry>, limits: ToolLimits) -> Self {
        Self::with_layers(registry, limits, Layers::default(), true)
    }

    /// Creates a dispatcher whose calls pass through `layers`. With `on_demand` models see tools by
    /// their exposure, else all.
    pub(crate) fn with_layers(
        registry: Arc<dyn ToolRegistry>,
        limits: ToolLimits,
        layers: Layers<ToolInvocation, ToolInvokeResponse>,
        on_demand: bool,
    ) -> Self {
        let guard = Arc::new(Guard::new(registry, limits, on_demand));
        // Behind layers the facts are asked anew: a layer may have rewritten the call.
        let stack = layers.around(&guard, |guard, invocation: ToolInvocation| async move {
            Ok::<_, BoxError>(guard.call(invocation.request, None, &invocation.cx).await)
        });
        Self {
            guard,
            stack,
            captures_content: false,
            traces: Traces::default(),
        }
    }

    /// Sets whether spans hold arguments and results.
    pub(crate) fn capture_content(mut self, captures_content: bool) -> Self {
        self.captures_content = captures_content;
        self
    }

    /// Sets the source of the positions of calls in traces.
    pub(crate) fn traces(mut self, traces: Traces) -> Self {
        self.traces = traces;
        self
    }

    /// Returns the registry of the tools.
    pub fn registry(&self) -> &Arc<dyn ToolRegistry> {
        self.guard.registry()
    }

    /// Returns the tools as the model of a turn sees them while the groups `active` are active.
    /// With `task_list` the tools that keep the list come after the tools that are always shown,
    /// unless there are no such tools: a plan without tools to carry it out is of no use.
    pub(crate) fn view(&self, of: TurnTools<'_>, task_list: bool, active: &[ToolName]) -> ToolView {
        let task_tools = task_list.then_some(self.guard.task_tools());
        self.guard.table_of(of).view(task_tools, active)
    }

    /// Returns the label of the texts that models read about the tools: their descriptions may be
    /// text of other programs.
    pub(crate) fn text_label(&self, of: TurnTools<'_>) -> Label {
        self.guard.table_of(of).text.clone()
    }

    /// Returns `view` followed by the tools that are in the registry now and that it lacks, while
    /// the groups `active` are active.
    pub(crate) fn extended(&self, of: TurnTools<'_>, view: &ToolView, active: &[ToolName]) -> ToolView {
        self.guard.table_of(of).extended(view, active)
    }

    /// Returns the groups and tools that a call that ended has activated.
    pub(crate) fn activated(&self, of: TurnTools<'_>, ended: &ToolInvokeResponse, arguments: &str) -> Activated {
        self.guard.table_of(of).activated(ended, arguments)
    }

    /// Calls a tool. Never fails: a failure is a response with `is_error`.
    ///
    /// Dropping the future cancels the call.
    // No `async fn`: a future around the future below would be copied and polled once more for each
    // call.
    pub fn call(&self, request: ToolInvokeRequest, cx: &CallContext) -> impl Future<Output = ToolInvokeResponse> {
        self.observed(request, None, cx)
    }

    /// Calls a tool about whose call `facts` were asked before, so that the turn and the dispatcher
    /// decide alike.
    pub(crate) fn call_with_facts(
        &self,
        request: ToolInvokeRequest,
        facts: CallFacts,
        cx: &CallContext,
    ) -> impl Future<Output = ToolInvokeResponse> {
        self.observed(request, Some(facts), cx)
    }

    async fn observed(
        &self,
        request: ToolInvokeRequest,
        facts: Option<CallFacts>,
        cx: &CallContext,
    ) -> ToolInvokeResponse {
        let span = span(&request);
        // A call without a trace, as of a program's own dispatcher, stays without one where no span is
        // recorded.
        let traced = (cx.trace().is_some() || !span.is_disabled()).then(|| self.traces.enter(&span, cx));
        let cx = traced.as_ref().unwrap_or(cx);
        // Measured: moving a short call into a span costs as much as the call, and without a subscriber
        // for nothing.
        if span.is_disabled() && self.stack.is_none() {
            return self.guard.call(request, facts, cx).await;
        }
        // Boxed: every call's future would have room for spans and layers otherwise.
        Box::pin(self.in_span(span, request, facts, cx)).await
    }

    async fn in_span(
        &self,
        span: Span,
        request: ToolInvokeRequest,
        facts: Option<CallFacts>,
        cx: &CallContext,
    ) -> ToolInvokeResponse {
        let observed = CallSpan::begin(span, self.captures_content, &request);
        let calling = self.through_layers(request, facts, cx);
        let response = calling.instrument(observed.span.clone()).await;
        observed.end(&response);
        response
    }

    async fn through_layers(
        &self,
        request: ToolInvokeRequest,
        facts: Option<CallFacts>,
        cx: &CallContext,
    ) -> ToolInvokeResponse {
        let Some(stack) = &self.stack else {
            let response = self.guard.call(request, facts, cx).await;
            return self.labelled(response, facts, cx);
        };
        let response = self.call_through(stack, request, facts, cx).await;
        self.labelled(response, facts, cx)
    }

    /// Labels the output of another tool than the tool that the facts were asked of: a layer may
    /// have rewritten the call, and the registry may have changed. Without this label the turn
    /// would trust the output as the facts state.
    pub(crate) fn labelled(
        &self,
        mut response: ToolInvokeResponse,
        facts: Option<CallFacts>,
        cx: &CallContext,
    ) -> ToolInvokeResponse {
        let is_taken_as_own = facts.is_some_and(|facts| facts.own_output);
        if is_taken_as_own && !self.guard.has_own_output(&response.tool_name, cx) {
            let outside = Provenance::new(format!("tool:{}", response.tool_name), Trust::Untrusted);
            response.content = response.content.attributed(outside);
        }
        response
    }

    async fn call_through(
        &self,
        stack: &Stack<ToolInvocation, ToolInvokeResponse>,
        request: ToolInvokeRequest,
        facts: Option<CallFacts>,
        cx: &CallContext,
    ) -> ToolInvokeResponse {
        // Asked before the call: the tool may be gone from the registry when a layer ends the call.
        let effect = facts.unwrap_or_else(|| self.facts(&request, cx)).effect;
        let invocation = ToolInvocation::new(request.clone(), cx.clone());
        // A layer is the user's code, as a tool is: its panic is a response, and so is its silence.
        let calling = AssertUnwindSafe(call(stack, invocation)).catch_unwind().map(caught);
        let silent = self.layers_are_silent(&request, cx);
        let error = match run_until_stopped(calling, silent).await {
            Ok(Ok(Ok(response))) => return response,
            Ok(Ok(Err(error))) => ToolError::from_layer(error, effect),
            Ok(Err(panic)) => panicked(&request.tool_name, &panic),
            Err(()) => {
                tracing::error!(tool = %loggable(request.tool_name.as_str()), "tool layer does not answer; the call ends without it");
                ToolError::too_long("a tool layer did not answer", effect)
            }
        };
        request.fail(&error)
    }

    /// Waits until the layers around a call have been silent for too long: for the tool's own time
    /// limit after the call was cancelled or its deadline passed. The guard inside of them ends the
    /// tool itself by then.
    ///
    /// Without this a layer that never answers around a mutating call, which no cancellation ends,
    /// would block its session for good.
    async fn layers_are_silent(&self, request: &ToolInvokeRequest, cx: &CallContext) {
        let given_up = async {
            match cx.deadline() {
                Some(deadline) => sleep_until(deadline).await,
                None => sleep(MAX_LAYER_TIME).await,
            }
        };
        // Either way the caller no longer counts on the call.
        cx.cancellation().run_until_cancelled(given_up).await;
        let limit = self.guard.find(&request.tool_name).map(|tool| tool.time_limit);
        sleep(limit.unwrap_or_default().saturating_add(LAYER_GRACE)).await;
    }

    /// Returns the facts about a call before it runs: its effect, whether it needs an approval, and
    /// the way of keeping its result. A call of a tool that does not exist has no effect.
    pub(crate) fn facts(&self, request: &ToolInvokeRequest, cx: &CallContext) -> CallFacts {
        self.guard.facts(request, cx)
    }

    /// Returns the doubts of a call for which the model of `cx` needs a person's endorsement, because
    /// it has read untrusted text; `None` if it needs none.
    pub(crate) async fn doubts(
        &self,
        request: &ToolInvokeRequest,
        effect: Effect,
        cx: &CallContext,
    ) -> Option<Vec<ValueOrigin>> {
        self.guard.doubts(request, effect, cx).await
    }

    /// Reports whether a call with this effect may need an endorsement once its model has read
    /// untrusted text.
    pub(crate) fn may_doubt(&self, name: &ToolName, effect: Effect, cx: &CallContext) -> bool {
        self.guard.may_doubt(name, effect, cx)
    }

    /// Checks that arguments fit the tool of this name. A tool that is gone fails the call itself.
    pub(crate) fn check_arguments(&self, name: &ToolName, arguments: &str) -> Result<(), ToolError> {
        let request = ToolInvokeRequest::new("", name.clone(), arguments);
        let tool = self.guard.find(name);
        tool.map_or(Ok(()), |tool| tool.check_schema(&request, Effect::Mutating))
    }

    /// Reports whether the call changes something outside although the message of its turn only
    /// informs.
    pub(crate) fn is_unasked(&self, request: &ToolInvokeRequest, effect: Effect, cx: &CallContext) -> bool {
        self.guard.is_unasked(request, effect, cx)
    }

    /// Asks the tool for the result of an interrupted call, within the time limit of a call. A tool
    /// that panics or takes longer answers [`Recovery::Unknown`], as does a tool that is not
    /// registered within five seconds: the tools of other programs come a little after the start of
    /// the host.
    pub async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        let Ok(tool) = timeout(ARRIVAL_TIME, self.arrival_of(&request.tool_name)).await else {
            return Recovery::Unknown;
        };
        let asking = tool.entry.executor().recover(request, cx);
        match Isolate::new(asking, Instant::now(), tool.time_limit).await {
            Isolated::Done(recovery) => recovery,
            Isolated::TimedOut | Isolated::Panicked(_) => Recovery::Unknown,
        }
    }

    /// Waits until a tool is registered.
    async fn arrival_of(&self, name: &ToolName) -> Arc<GuardedTool> {
        let mut generations = self.registry().watch();
        loop {
            if let Some(tool) = self.guard.find(name) {
                return tool;
            }
            if generations.changed().await.is_err() {
                // The registry is gone, and with it the hope for the tool.
                std::future::pending::<()>().await;
            }
        }
    }
}
