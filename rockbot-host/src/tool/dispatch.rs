//! The guard around every tool call.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use rockbot_core::support::loggable;
use rockbot_core::tool::{
    Effect, Recovery, ToolEntry, ToolError, ToolErrorCode, ToolExecutor, ToolInvocation, ToolInvokeRequest,
    ToolInvokeResponse, ToolRegistry, ToolSnapshot, ToolView,
};
use rockbot_core::{BoxError, CallContext, CallId, ToolName};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::meters::Meters;
use super::span::{Watched, span};
use super::tasks::task_tools;
use crate::isolate::{Isolate, Isolated, panic_message};
use crate::layer::{Layers, Stack, call};
use crate::telemetry::MeterBook;
use crate::turn::CallFacts;
use crate::turn::tasks::TaskList;

/// How long and how many tool calls may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolLimits {
    /// How long a call may take when its tool says nothing else. Default 60 seconds.
    pub time_limit: Duration,
    /// How many calls may run at once in this host; further ones wait. Default 64.
    pub max_concurrency: usize,
    /// How long a result may be, in bytes. A longer one is cut, and says so first. Default 10 MiB.
    pub max_result_bytes: usize,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            time_limit: Duration::from_secs(60),
            max_concurrency: 64,
            max_result_bytes: 10 << 20,
        }
    }
}

/// Calls tools: the one way from a name and arguments to a response, for every door.
///
/// A call goes through the user's layers, and then through one fused guard: look the tool up, check the grant
/// and the arguments, wait for a free place, run under the time limit, catch panics, measure. Whatever goes
/// wrong is a response that the model can act on.
#[derive(Debug)]
pub struct ToolDispatcher {
    guard: Arc<Guard>,
    stack: Option<Stack<ToolInvocation, ToolInvokeResponse>>,
    captures_content: bool,
}

impl ToolDispatcher {
    /// Calls the tools of `registry` within `limits`.
    pub fn new(registry: Arc<dyn ToolRegistry>, limits: ToolLimits) -> Self {
        Self::with_layers(registry, limits, Layers::default())
    }

    pub(crate) fn with_layers(
        registry: Arc<dyn ToolRegistry>,
        limits: ToolLimits,
        layers: Layers<ToolInvocation, ToolInvokeResponse>,
    ) -> Self {
        let guard = Arc::new(Guard {
            registry,
            of_turns: task_tools(),
            time_limit: limits.time_limit,
            max_result_bytes: limits.max_result_bytes,
            permits: Semaphore::new(limits.max_concurrency.clamp(1, Semaphore::MAX_PERMITS)),
            table: ArcSwap::default(),
            rebuilding: Mutex::new(()),
            meters: MeterBook::default(),
        });
        let stack = layers.around(&guard, |guard, invocation: ToolInvocation| async move {
            Ok::<_, BoxError>(guard.call(invocation.request, &invocation.cx).await)
        });
        Self {
            guard,
            stack,
            captures_content: false,
        }
    }

    /// With spans that hold arguments and results, if `captures_content`.
    pub(crate) fn capture_content(mut self, captures_content: bool) -> Self {
        self.captures_content = captures_content;
        self
    }

    /// The tools.
    pub fn registry(&self) -> &Arc<dyn ToolRegistry> {
        &self.guard.registry
    }

    /// The tools as the model of a turn sees them; with a task list, those to keep it come first. A list alone would be
    /// of no use.
    pub(crate) fn view(&self, task_list: bool) -> ToolView {
        let tools = self.guard.registry.snapshot();
        match task_list && !tools.view().is_empty() {
            true => self.guard.of_turns.view().followed_by(&tools),
            false => tools.view().clone(),
        }
    }

    /// Calls a tool. Never fails: a failure is a response with `is_error`.
    pub async fn call(&self, request: ToolInvokeRequest, cx: &CallContext) -> ToolInvokeResponse {
        let span = span(&request);
        // Most calls are short, and nobody looks: moving them into a span would cost as much as they do.
        if span.is_disabled() {
            return self.through_layers(request, cx).await;
        }
        let watched = Watched::begin(span, self.captures_content, &request);
        let calling = self.through_layers(request, cx).instrument(watched.span.clone());
        let response = calling.await;
        watched.end(&response);
        response
    }

    async fn through_layers(&self, request: ToolInvokeRequest, cx: &CallContext) -> ToolInvokeResponse {
        let Some(stack) = &self.stack else {
            return self.guard.call(request, cx).await;
        };
        // Asked now: the tool may be gone when a layer ends the call.
        let effect = self.facts(&request, cx).effect;
        let invocation = ToolInvocation {
            request: request.clone(),
            cx: cx.clone(),
        };
        // A layer is a user's code as much as a tool is.
        let error = match AssertUnwindSafe(call(stack, invocation)).catch_unwind().await {
            Ok(Ok(response)) => return response,
            Ok(Err(error)) => layer_error(error, effect),
            Err(panic) => broke_down(&request.tool_name, &panic_message(&*panic)),
        };
        request.fail(&error)
    }

    /// What is known of a call before it runs. A tool that does not exist changes nothing.
    pub fn facts(&self, request: &ToolInvokeRequest, cx: &CallContext) -> CallFacts {
        let Some(tool) = self.guard.find_for(&request.tool_name, cx) else {
            return CallFacts {
                effect: Effect::Pure,
                needs_approval: false,
                keeps_result_whole: false,
            };
        };
        CallFacts {
            effect: tool.effect_of(request),
            needs_approval: tool.needs_approval(request),
            keeps_result_whole: tool.entry.registration().hints.keeps_results_whole,
        }
    }

    /// Asks the tool what became of an interrupted call, within the time limit of a call.
    pub async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        let Some(tool) = self.guard.find(&request.tool_name) else {
            return Recovery::Unknown;
        };
        let asking = tool.entry.executor().recover(request, cx);
        match Isolate::new(asking, Instant::now(), tool.time_limit).await {
            Isolated::Done(recovery) => recovery,
            Isolated::TimedOut | Isolated::Panicked(_) => Recovery::Unknown,
        }
    }
}

/// What a layer's error means to the model: a stock time-out layer's error is a time-out.
fn layer_error(error: BoxError, effect: Effect) -> ToolError {
    if error.is::<tower::timeout::error::Elapsed>() {
        return ToolError::too_long("the tool took too long", effect).with_source(error);
    }
    ToolError::from(error)
}

#[derive(Debug)]
struct Guard {
    registry: Arc<dyn ToolRegistry>,
    /// Tools that only calls of a turn with a task list find.
    of_turns: Arc<ToolSnapshot>,
    time_limit: Duration,
    max_result_bytes: usize,
    permits: Semaphore,
    /// The tools of the registry's newest snapshot that was seen, each with what its calls need.
    table: ArcSwap<Table>,
    /// Held by who makes a new table: two made at once would give a tool twice its places.
    rebuilding: Mutex<()>,
    meters: MeterBook<Meters>,
}

#[derive(Debug, Default)]
struct Table {
    snapshot: Arc<ToolSnapshot>,
    tools: HashMap<ToolName, Arc<GuardedTool>>,
}

#[derive(Debug)]
struct GuardedTool {
    entry: Arc<ToolEntry>,
    time_limit: Duration,
    permits: Option<Semaphore>,
    meters: Arc<Meters>,
}

impl GuardedTool {
    fn effect_of(&self, request: &ToolInvokeRequest) -> Effect {
        let own = AssertUnwindSafe(|| self.entry.executor().effect_of(request));
        let own = catch_unwind(own).ok().flatten();
        own.unwrap_or(self.entry.registration().effect)
    }

    fn needs_approval(&self, request: &ToolInvokeRequest) -> bool {
        let own = AssertUnwindSafe(|| self.entry.executor().needs_approval(request));
        // A tool that breaks down over this question does not get around the answer.
        let own = catch_unwind(own).unwrap_or(Some(true));
        own.unwrap_or(self.entry.registration().hints.needs_approval)
    }
}

impl Guard {
    async fn call(&self, request: ToolInvokeRequest, cx: &CallContext) -> ToolInvokeResponse {
        let started = Instant::now();
        let Some(tool) = self.find_for(&request.tool_name, cx) else {
            return self.not_found(request, started);
        };
        let response = match self.check(&tool, &request, cx) {
            Ok(()) => self.run(&tool, request, cx, started).await,
            Err(error) => request.fail(&error),
        };
        tool.meters.record(&response, started.elapsed());
        response
    }

    fn check(&self, tool: &GuardedTool, request: &ToolInvokeRequest, cx: &CallContext) -> Result<(), ToolError> {
        let name = &request.tool_name;
        if tool.needs_approval(request) && !cx.is_granted(&request.tool_call_id, name.as_str(), &request.arguments) {
            let message = format!("`{name}` needs the user's approval for each call, and this call has none");
            return Err(ToolError::new(ToolErrorCode::ApprovalRequired, message));
        }
        if tool.entry.executor().checks_arguments() {
            return Ok(());
        }
        let checked = tool.entry.arguments().check(&request.arguments);
        checked.map(drop).map_err(|error| error.into_tool_error(name))
    }

    async fn run(
        &self,
        tool: &GuardedTool,
        request: ToolInvokeRequest,
        cx: &CallContext,
        called: Instant,
    ) -> ToolInvokeResponse {
        let (Some(own), Some(shared)) = (
            acquire(tool.permits.as_ref(), cx).await,
            acquire(Some(&self.permits), cx).await,
        ) else {
            let message = "not run: it still waited for a free place when it was cancelled";
            return request.fail(&ToolError::new(ToolErrorCode::Cancelled, message));
        };
        // The time spent in the waiting line is not the tool's.
        let started = if own.waited || shared.waited {
            Instant::now()
        } else {
            called
        };
        let deadline = cx
            .deadline()
            .map(|deadline| deadline.saturating_duration_since(started));
        let limit = deadline.map_or(tool.time_limit, |left| left.min(tool.time_limit));
        // The identity of the call outlives the request, which the executor takes.
        let effect = tool.effect_of(&request);
        let (call, name) = (request.tool_call_id.clone(), request.tool_name.clone());
        let ended = match isolate(&**tool.entry.executor(), request, cx, started, limit).await {
            Isolated::Done(Ok(response)) => Ok(response),
            Isolated::Done(Err(error)) => Err(error),
            Isolated::TimedOut => Err(ToolError::too_long(
                format_args!("the tool timed out after {limit:?}"),
                effect,
            )),
            Isolated::Panicked(message) => Err(broke_down(&name, &message)),
        };
        cut(answer(call, name, ended), self.max_result_bytes)
    }

    fn not_found(&self, request: ToolInvokeRequest, started: Instant) -> ToolInvokeResponse {
        let names: Vec<_> = self
            .registry
            .snapshot()
            .entries()
            .iter()
            .map(|entry| entry.registration().name.to_string())
            .take(40)
            .collect();
        let name = &request.tool_name;
        let message = format!("there is no tool `{name}`. The tools are: {}", names.join(", "));
        let response = request.fail(&ToolError::new(ToolErrorCode::ToolNotFound, message));
        self.meters
            .of("_unknown", Meters::new)
            .record(&response, started.elapsed());
        response
    }

    /// The tool that a call of `name` means. A turn's own tools come first, as the model sees them.
    fn find_for(&self, name: &ToolName, cx: &CallContext) -> Option<Arc<GuardedTool>> {
        let own = cx
            .extension::<TaskList>()
            .and_then(|_| self.of_turns.find(name.as_str()));
        match own {
            Some(own) => Some(Arc::new(self.guarded(own))),
            None => self.find(name),
        }
    }

    fn find(&self, name: &ToolName) -> Option<Arc<GuardedTool>> {
        let table = self.table.load();
        if Arc::ptr_eq(&table.snapshot, &self.registry.snapshot()) {
            return table.tools.get(name).cloned();
        }
        self.rebuild().tools.get(name).cloned()
    }

    /// The table of the registry's newest snapshot. Tools that did not change keep their places and meters.
    fn rebuild(&self) -> Arc<Table> {
        // The guarded value is `()`: a panic elsewhere cannot have left it half changed.
        let _rebuilding = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table.load_full();
        let snapshot = self.registry.snapshot();
        if Arc::ptr_eq(&table.snapshot, &snapshot) {
            return table;
        }
        let guarded = |entry: &Arc<ToolEntry>| {
            let name = &entry.registration().name;
            let same = table
                .tools
                .get(name)
                .filter(|known| Arc::ptr_eq(&known.entry, entry))
                .cloned();
            (name.clone(), same.unwrap_or_else(|| Arc::new(self.guarded(entry))))
        };
        let tools = snapshot.entries().iter().map(guarded).collect();
        let table = Arc::new(Table { snapshot, tools });
        self.table.store(table.clone());
        table
    }

    fn guarded(&self, entry: &Arc<ToolEntry>) -> GuardedTool {
        let registration = entry.registration();
        let places = |calls: u32| Semaphore::new((calls as usize).clamp(1, Semaphore::MAX_PERMITS));
        GuardedTool {
            entry: entry.clone(),
            time_limit: registration.hints.time_limit.unwrap_or(self.time_limit),
            permits: registration.hints.max_concurrency.map(places),
            meters: self.meters.of(registration.name.as_str(), Meters::new),
        }
    }
}

/// Starts the call; an executor may panic even before it returns a future.
async fn isolate(
    executor: &dyn ToolExecutor,
    request: ToolInvokeRequest,
    cx: &CallContext,
    started: Instant,
    limit: Duration,
) -> Isolated<Result<ToolInvokeResponse, ToolError>> {
    let start = AssertUnwindSafe(|| executor.execute(request, cx));
    match catch_unwind(start) {
        Ok(running) => Isolate::new(running, started, limit).await,
        Err(panic) => Isolated::Panicked(panic_message(&*panic)),
    }
}

/// The response to the call that was made: an executor's own ids are not trusted.
fn answer(call: CallId, name: ToolName, ended: Result<ToolInvokeResponse, ToolError>) -> ToolInvokeResponse {
    match ended {
        Ok(response) => ToolInvokeResponse {
            tool_call_id: call,
            tool_name: name,
            ..response
        },
        Err(error) => ToolInvokeResponse {
            tool_call_id: call,
            tool_name: name,
            content: error.to_string(),
            is_error: true,
            code: Some(error.code()),
        },
    }
}

/// The response with at most `limit` bytes of content; what was left out is said where nobody misses it.
fn cut(mut response: ToolInvokeResponse, limit: usize) -> ToolInvokeResponse {
    let length = response.content.len();
    if length > limit {
        let kept = response.content.floor_char_boundary(limit);
        response.content.truncate(kept);
        response
            .content
            .insert_str(0, &format!("[result cut: the first {kept} of {length} bytes]\n"));
    }
    response
}

/// A place among the calls that may run at once.
struct Place<'a> {
    _permit: Option<SemaphorePermit<'a>>,
    waited: bool,
}

/// A free place. Without a limit, or with a place free, nobody waits; `None` when the call was cancelled first.
async fn acquire<'a>(places: Option<&'a Semaphore>, cx: &CallContext) -> Option<Place<'a>> {
    let Some(places) = places else {
        return Some(Place {
            _permit: None,
            waited: false,
        });
    };
    if let Ok(permit) = places.try_acquire() {
        return Some(Place {
            _permit: Some(permit),
            waited: false,
        });
    }
    let permit = cx.cancellation().run_until_cancelled(places.acquire()).await?;
    // Nobody closes these semaphores; if it happened, a call without a place is the lesser evil.
    Some(Place {
        _permit: permit.ok(),
        waited: true,
    })
}

fn broke_down(tool: &ToolName, message: &str) -> ToolError {
    tracing::error!(tool = %loggable(tool.as_str()), message = %loggable(message), "a tool panicked");
    ToolError::execution_failed("the tool broke down; try another way")
}
