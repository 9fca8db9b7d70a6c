//! The guard around each tool call: look-up, checks, permits, time limit, isolation of panics, meters.
//!
//! It is one fused future instead of a stack of layers: most tools answer at once, and each layer would cost such a
//! call more than its own work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use rockbot_core::support::{FoldMap, caught, loggable};
use rockbot_core::tool::{
    Effect, ToolEntry, ToolError, ToolErrorCode, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistry,
    ToolSnapshot, ToolView,
};
use rockbot_core::trust::{Label, Trust};
use rockbot_core::{CallContext, CallId, ToolName};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout};

use super::ToolLimits;
use super::activation::{Activated, activation_tool, group_of};
use super::blocking::Watched;
use super::meters::Meters;
use super::tasks::task_tools;
use crate::isolate::{Isolate, Isolated};
use crate::telemetry::MeterBook;
use crate::turn::CallFacts;
use crate::turn::tasks::TaskList;

/// Maximum time in which a tool tells whether a call needs an endorsement; later the call needs one.
const ENDORSEMENT_TIME: Duration = Duration::from_secs(10);

/// Maximum number of tool names in the response to a call of an unknown tool.
const MAX_NAMED_TOOLS: usize = 40;

/// Namespaces of models' own formats, which some servers leave before the names of native calls.
const NAMESPACES: [&str; 3] = ["functions.", "default_api.", "tools."];

/// The guard around all tool calls of a host.
#[derive(Debug)]
pub(super) struct Guard {
    registry: Arc<dyn ToolRegistry>,
    /// The tools that exist only within a turn with a task list.
    task_tools: Arc<ToolSnapshot>,
    time_limit: Duration,
    max_result_bytes: usize,
    max_blocking: Duration,
    /// `true` if models see tools by their exposure, `false` if they see all.
    on_demand: bool,
    permits: Semaphore,
    /// The newest snapshot of the registry that was seen, with the state of each tool. Read without a lock.
    table: ArcSwap<ToolTable>,
    /// Held while a new table is built: two tables built at once would give a tool two semaphores, and so twice its
    /// permits.
    rebuilding: Mutex<()>,
    meters: MeterBook<Meters>,
}

/// The guarded tools of one registry snapshot.
#[derive(Debug, Default)]
struct ToolTable {
    snapshot: Arc<ToolSnapshot>,
    tools: FoldMap<ToolName, Arc<GuardedTool>>,
    /// The tool that activates groups of tools, where there are some; it is among `tools`, too.
    activation: Option<Arc<GuardedTool>>,
    /// `true` if a model does not see all tools.
    hides: bool,
    /// The label of the tools' descriptions. Those of groups count, too: a model sees their names.
    text: Label,
    /// The views while no group is active, without and with a task list. Each is written once.
    views: [OnceLock<ToolView>; 2],
}

impl ToolTable {
    fn named(&self, name: &ToolName) -> Option<Arc<GuardedTool>> {
        let inner = || NAMESPACES.iter().find_map(|space| name.as_str().strip_prefix(space));
        let tool = self.tools.get(name);
        tool.or_else(|| self.tools.get(inner()?)).cloned()
    }

    /// Returns the tools that a model sees while the groups `active` are active.
    fn exposed<'a>(&'a self, active: &'a [ToolName]) -> impl Iterator<Item = &'a Arc<ToolEntry>> {
        let activation = self.activation.iter().map(|tool| &tool.entry);
        let (always, of_groups) = (self.snapshot.exposed(&[]), self.snapshot.of_groups(active));
        always.chain(activation).chain(of_groups)
    }
}

/// A tool with the limits and meters of its calls.
#[derive(Debug)]
pub(super) struct GuardedTool {
    pub(super) entry: Arc<ToolEntry>,
    pub(super) time_limit: Duration,
    permits: Option<Semaphore>,
    meters: Arc<Meters>,
}

impl GuardedTool {
    fn facts(&self, request: &ToolInvokeRequest) -> CallFacts {
        let hints = &self.entry.registration().hints;
        CallFacts {
            effect: self.effect_of(request),
            needs_approval: self.needs_approval(request),
            keeps_result_whole: hints.keeps_results_whole,
            delegates: hints.delegates,
            runs_turn: hints.runs_turn,
            own_output: hints.own_output,
        }
    }

    fn effect_of(&self, request: &ToolInvokeRequest) -> Effect {
        let stated = AssertUnwindSafe(|| self.entry.executor().effect_of(request));
        let stated = caught(catch_unwind(stated)).ok().flatten();
        stated.unwrap_or(self.entry.registration().effect)
    }

    fn needs_approval(&self, request: &ToolInvokeRequest) -> bool {
        let stated = AssertUnwindSafe(|| self.entry.executor().needs_approval(request));
        // A panic counts as a yes: failing open would let the call through without a person.
        let stated = caught(catch_unwind(stated)).unwrap_or(Some(true));
        stated.unwrap_or(self.entry.registration().hints.needs_approval)
    }
}

impl GuardedTool {
    /// Reports whether a person must approve the call because its model has read untrusted text.
    async fn needs_endorsement(&self, request: &ToolInvokeRequest, cx: &CallContext) -> bool {
        let registration = self.entry.registration();
        if !registration.hints.needs_endorsement || cx.content_trust() > Trust::Untrusted {
            return false;
        }
        if registration.is_ordered(request, cx) {
            return false;
        }
        let stated = AssertUnwindSafe(self.entry.executor().needs_endorsement(request, cx)).catch_unwind();
        let stated = stated.map(caught);
        // A panic counts as a yes, as it does for approvals, and so does a store that does not answer.
        let stated = timeout(ENDORSEMENT_TIME, stated).await.unwrap_or(Ok(Some(true)));
        stated.unwrap_or(Some(true)).unwrap_or(true)
    }

    /// Reports a call that blocked its thread for longer than `allowed`.
    fn report_blocking(&self, blocked: Duration, allowed: Duration) {
        if blocked > allowed {
            let tool = &self.entry.registration().name;
            tracing::warn!(
                %tool,
                ?blocked,
                "a tool blocked its thread, which other turns and time limits need; await instead, or move the work to \
                 `tokio::task::spawn_blocking`"
            );
            self.meters.record_blocking();
        }
    }
}

impl Guard {
    pub(super) fn new(registry: Arc<dyn ToolRegistry>, limits: ToolLimits, on_demand: bool) -> Self {
        Self {
            registry,
            task_tools: task_tools(),
            time_limit: limits.time_limit,
            max_result_bytes: limits.max_result_bytes,
            max_blocking: limits.max_blocking,
            on_demand,
            permits: Semaphore::new(limits.max_concurrency.clamp(1, Semaphore::MAX_PERMITS)),
            table: ArcSwap::default(),
            rebuilding: Mutex::new(()),
            meters: MeterBook::default(),
        }
    }

    pub(super) fn registry(&self) -> &Arc<dyn ToolRegistry> {
        &self.registry
    }

    pub(super) fn view(&self, task_list: bool, active: &[ToolName]) -> ToolView {
        let table = self.newest_table();
        let view = table.views[usize::from(task_list)].get_or_init(|| {
            let tools = match table.hides {
                true => ToolView::default().extended_by(table.snapshot.generation(), table.exposed(&[])),
                false => table.snapshot.view().clone(),
            };
            match task_list && !tools.is_empty() {
                true => tools.followed_by(&self.task_tools),
                false => tools,
            }
        });
        match table.hides && !active.is_empty() {
            true => view.extended_by(table.snapshot.generation(), table.snapshot.of_groups(active)),
            false => view.clone(),
        }
    }

    /// Returns the label of what models read about the tools.
    pub(super) fn text_label(&self) -> Label {
        self.newest_table().text.clone()
    }

    pub(super) fn extended(&self, view: &ToolView, active: &[ToolName]) -> ToolView {
        let table = self.newest_table();
        match table.hides {
            true => view.extended_by(table.snapshot.generation(), table.exposed(active)),
            false => view.extended(&table.snapshot),
        }
    }

    pub(super) fn activated(&self, ended: &ToolInvokeResponse, arguments: &str) -> Activated {
        let table = self.newest_table();
        let tool = table.tools.get(&ended.tool_name).filter(|_| table.hides);
        let Some(tool) = tool else {
            return Activated::default();
        };
        let is_own = table.activation.as_ref().is_some_and(|own| Arc::ptr_eq(own, tool));
        let groups = match (ended.is_error, is_own) {
            (true, _) => Vec::new(),
            (false, true) => group_of(arguments).into_iter().collect(),
            (false, false) => {
                let of_tool = &tool.entry.registration().hints.activates;
                of_tool.iter().chain(&ended.activates).cloned().collect()
            }
        };
        Activated { is_own, groups }
    }

    pub(super) fn facts(&self, request: &ToolInvokeRequest, cx: &CallContext) -> CallFacts {
        let unknown = CallFacts {
            effect: Effect::Pure,
            needs_approval: false,
            keeps_result_whole: false,
            delegates: false,
            runs_turn: false,
            // The host's own words say that there is no such tool.
            own_output: true,
        };
        let tool = self.resolve(&request.tool_name, cx);
        tool.map_or(unknown, |tool| tool.facts(request))
    }

    /// Reports whether the model of `cx` needs a person's endorsement for the call, because it has read untrusted text.
    pub(super) async fn needs_endorsement(&self, request: &ToolInvokeRequest, cx: &CallContext) -> bool {
        match self.resolve(&request.tool_name, cx) {
            Some(tool) => tool.needs_endorsement(request, cx).await,
            None => false,
        }
    }

    /// Returns `true` if the output of the tool that a call means by `name` is its own.
    pub(super) fn has_own_output(&self, name: &ToolName, cx: &CallContext) -> bool {
        let tool = self.resolve(name, cx);
        tool.is_none_or(|tool| tool.entry.registration().hints.own_output)
    }

    /// Runs one call. `known` are the facts that the caller asked before, if it did.
    pub(super) async fn call(
        &self,
        request: ToolInvokeRequest,
        known: Option<CallFacts>,
        cx: &CallContext,
    ) -> ToolInvokeResponse {
        let started = Instant::now();
        let Some(tool) = self.resolve(&request.tool_name, cx) else {
            return self.not_found(request, started);
        };
        // The approval alone is always asked here. It is the gate: since its facts were recorded, before a restart
        // perhaps, the tool may have been replaced by one that needs an approval.
        let needs_approval = known.is_some_and(|known| known.needs_approval) || tool.needs_approval(&request);
        let effect = known.map_or_else(|| tool.effect_of(&request), |known| known.effect);
        let name = request.tool_name.as_str();
        let is_granted = cx.is_granted(&request.tool_call_id, name, &request.arguments);
        // For this call alone: a context that a call passes on endorses nothing else.
        let is_endorsed = is_granted || tool.entry.registration().is_ordered(&request, cx);
        let endorsed = (is_endorsed != cx.is_endorsed()).then(|| cx.clone().with_endorsement(is_endorsed));
        let cx = endorsed.as_ref().unwrap_or(cx);
        let checked = match check(&tool, &request, needs_approval && !is_granted) {
            Ok(()) if !is_granted && tool.needs_endorsement(&request, cx).await => {
                Err(unendorsed(&request.tool_name, cx))
            }
            checked => checked,
        };
        // A store may have been asked about the endorsement.
        let called = match tool.entry.registration().hints.needs_endorsement {
            true => Instant::now(),
            false => started,
        };
        let mut blocked = None;
        let response = match checked {
            Ok(()) => self.run(&tool, request, effect, cx, called, &mut blocked).await,
            Err(error) => request.fail(&error),
        };
        let took = started.elapsed();
        tool.meters.record(&response, took);
        let blocked = blocked.unwrap_or_else(|| took.saturating_sub(called.duration_since(started)));
        tool.report_blocking(blocked, self.max_blocking);
        response
    }

    /// Runs a call that may run. Sets `blocked` to the longest time for which it blocked its thread, unless that is the
    /// time since `called`.
    async fn run(
        &self,
        tool: &GuardedTool,
        request: ToolInvokeRequest,
        effect: Effect,
        cx: &CallContext,
        called: Instant,
        blocked: &mut Option<Duration>,
    ) -> ToolInvokeResponse {
        // The tool's own permit first: calls that queue for a slow tool must not hold the permits of all others.
        // A call that runs a turn takes none of those: the calls of that turn need them.
        let runs_turn = tool.entry.registration().hints.runs_turn;
        let semaphores = [tool.permits.as_ref(), (!runs_turn).then_some(&self.permits)];
        let permits = match free_permits(semaphores) {
            Some(permits) => Ok(permits),
            // Boxed: every call's future would have room for the wait otherwise.
            None => Box::pin(acquire_all(semaphores, cx)).await,
        };
        let [own, shared] = match permits {
            Ok(permits) => permits,
            Err(error) => return request.fail(&error),
        };
        // Looked at after all waits, also those of layers and of the journal: what its caller gave up must not begin.
        if cx.cancellation().is_cancelled() {
            return request.fail(&cancelled_first());
        }
        // The time limit starts when the call does; without a wait, reading the clock once is enough.
        let started = match own.has_waited || shared.has_waited {
            true => Instant::now(),
            false => called,
        };
        let left = cx
            .deadline()
            .map(|deadline| deadline.saturating_duration_since(started));
        // Looked at after the waits: the caller may have given up meanwhile, and the call must not begin then.
        if left.is_some_and(|left| left.is_zero()) {
            return request.fail(&no_time_left());
        }
        let limit = left.map_or(tool.time_limit, |left| left.min(tool.time_limit));
        // The executor takes the request; the response needs its identity.
        let (call, name) = (request.tool_call_id.clone(), request.tool_name.clone());
        let ended = match start(&**tool.entry.executor(), request, cx) {
            Ok(running) => {
                let (ended, longest) = Watched::new(Isolate::new(running, started, limit), started).await;
                *blocked = longest.or_else(|| (started != called).then(|| started.elapsed()));
                ended
            }
            Err(panic) => Isolated::Panicked(panic),
        };
        let result = result_of(ended, &name, effect, limit);
        let mut response = response_to(call, name, result);
        truncate(&mut response, self.max_result_bytes);
        response
    }

    fn not_found(&self, request: ToolInvokeRequest, started: Instant) -> ToolInvokeResponse {
        let names: Vec<_> = self
            .registry
            .snapshot()
            .entries()
            .iter()
            .map(|entry| entry.registration().name.to_string())
            .take(MAX_NAMED_TOOLS)
            .collect();
        let name = &request.tool_name;
        let message = format!("there is no tool `{name}`. The tools are: {}", names.join(", "));
        let response = request.fail(&ToolError::new(ToolErrorCode::ToolNotFound, message));
        // One meter for all unknown names: they are the model's words, and would be unbounded labels.
        self.meters
            .of("_unknown", Meters::new)
            .record(&response, started.elapsed());
        response
    }

    /// Returns the tool that a call means by `name`. Within a turn with a task list the turn's own tools win over
    /// namesakes in the registry, as they do in the model's view.
    fn resolve(&self, name: &ToolName, cx: &CallContext) -> Option<Arc<GuardedTool>> {
        let of_turn = cx
            .extension::<TaskList>()
            .and_then(|_| self.task_tools.find(name.as_str()));
        match of_turn {
            Some(entry) => Some(Arc::new(self.guarded(entry))),
            None => self.find(name),
        }
    }

    /// Returns the tool of the registry with this name, or with the name behind a namespace of a model's own.
    pub(super) fn find(&self, name: &ToolName) -> Option<Arc<GuardedTool>> {
        // Borrowed, not `newest_table`: this is on the path of each call.
        let table = self.table.load();
        if Arc::ptr_eq(&table.snapshot, &self.registry.snapshot()) {
            return table.named(name);
        }
        self.rebuild().named(name)
    }

    /// Returns the table of the registry's newest snapshot.
    fn newest_table(&self) -> Arc<ToolTable> {
        let table = self.table.load_full();
        match Arc::ptr_eq(&table.snapshot, &self.registry.snapshot()) {
            true => table,
            false => self.rebuild(),
        }
    }

    /// Builds the table of the registry's newest snapshot. Tools that did not change keep their permits and meters.
    fn rebuild(&self) -> Arc<ToolTable> {
        // The guarded value is `()`: a panic elsewhere cannot have left it inconsistent.
        let _rebuilding = self.rebuilding.lock().unwrap_or_else(PoisonError::into_inner);
        // Read again under the lock: another caller may have built this table meanwhile.
        let table = self.table.load_full();
        let snapshot = self.registry.snapshot();
        if Arc::ptr_eq(&table.snapshot, &snapshot) {
            return table;
        }
        let guarded = |entry: &Arc<ToolEntry>| {
            let name = &entry.registration().name;
            let unchanged = table
                .tools
                .get(name)
                .filter(|known| Arc::ptr_eq(&known.entry, entry))
                .cloned();
            (name.clone(), unchanged.unwrap_or_else(|| Arc::new(self.guarded(entry))))
        };
        let mut tools: FoldMap<_, _> = snapshot.entries().iter().map(guarded).collect();
        let hides = self.on_demand && snapshot.entries().iter().any(|entry| !entry.exposure().is_always());
        let activation = hides.then(|| activation_tool(&snapshot)).flatten();
        let activation = activation.map(|entry| Arc::new(self.guarded(&entry)));
        let named = |tool: &Arc<GuardedTool>| (tool.entry.registration().name.clone(), tool.clone());
        tools.extend(activation.iter().map(named));
        let mut text = Label::HOST;
        let registrations = snapshot.entries().iter().map(|entry| entry.registration());
        for registration in registrations.filter(|registration| registration.hints.outside_text) {
            text.join(&Label::untrusted(&format!("tools:{}", registration.source)));
        }
        let table = Arc::new(ToolTable {
            snapshot,
            tools,
            activation,
            hides,
            text,
            views: Default::default(),
        });
        self.table.store(table.clone());
        table
    }

    fn guarded(&self, entry: &Arc<ToolEntry>) -> GuardedTool {
        let registration = entry.registration();
        let permits = |calls: u32| Semaphore::new((calls as usize).clamp(1, Semaphore::MAX_PERMITS));
        GuardedTool {
            entry: entry.clone(),
            time_limit: registration.hints.time_limit.unwrap_or(self.time_limit),
            permits: registration.hints.max_concurrency.map(permits),
            meters: self.meters.of(registration.name.as_str(), Meters::new),
        }
    }
}

/// Checks that the call has the grant that it needs, and that its arguments fit the tool's schema.
fn check(tool: &GuardedTool, request: &ToolInvokeRequest, lacks_grant: bool) -> Result<(), ToolError> {
    let name = &request.tool_name;
    if lacks_grant {
        let message = format!("`{name}` needs the user's approval for each call, and this call has none");
        return Err(ToolError::new(ToolErrorCode::ApprovalRequired, message));
    }
    if tool.entry.executor().checks_arguments() {
        return Ok(());
    }
    let checked = tool.entry.arguments().check(&request.arguments);
    checked.map(drop).map_err(|error| error.into_tool_error(name))
}

/// Returns the error of a call that only a person can endorse, and has not.
fn unendorsed(tool: &ToolName, cx: &CallContext) -> ToolError {
    let message = format!(
        "`{tool}` would change what the user trusts, and this conversation shows text of others ({}): only the user can \
         approve that, and has not. Nothing was changed; tell the user what you would change",
        cx.label()
    );
    ToolError::new(ToolErrorCode::ApprovalRequired, message)
}

/// A call that runs.
type Running<'a> = Pin<Box<dyn Future<Output = Result<ToolInvokeResponse, ToolError>> + Send + 'a>>;

/// Starts a call. Returns the message of the panic of an executor that did not even return a future.
fn start<'a>(
    executor: &'a dyn ToolExecutor,
    request: ToolInvokeRequest,
    cx: &'a CallContext,
) -> Result<Running<'a>, String> {
    let start = AssertUnwindSafe(|| executor.execute(request, cx));
    caught(catch_unwind(start))
}

/// Returns the response to the call that was made: the ids that an executor puts into its response are not trusted, and
/// content with too many parts, or with one that is too large, is refused.
fn response_to(call: CallId, name: ToolName, ended: Result<ToolInvokeResponse, ToolError>) -> ToolInvokeResponse {
    let error = match ended {
        Ok(mut response) => match response.content.check_bounds() {
            Ok(()) => {
                (response.tool_call_id, response.tool_name) = (call, name);
                return response;
            }
            Err(error) => ToolError::execution_failed(format!("the result cannot be used: {error}")),
        },
        Err(error) => error,
    };
    ToolInvokeResponse::failed(call, name, &error)
}

/// Returns the result of a call that ended, or was ended by its time `limit` or a panic.
fn result_of(
    ended: Isolated<Result<ToolInvokeResponse, ToolError>>,
    tool: &ToolName,
    effect: Effect,
    limit: Duration,
) -> Result<ToolInvokeResponse, ToolError> {
    match ended {
        Isolated::Done(result) => result.map_err(|error| error.after(effect)),
        Isolated::TimedOut => Err(ToolError::too_long(
            format_args!("the tool timed out after {limit:?}"),
            effect,
        )),
        Isolated::Panicked(message) => Err(panicked(tool, &message)),
    }
}

/// Returns the error of a call that was cancelled before it began.
fn cancelled_first() -> ToolError {
    ToolError::new(ToolErrorCode::Cancelled, "not run: cancelled before it began")
}

/// Returns the error of a call that did not begin before its deadline.
fn no_time_left() -> ToolError {
    ToolError::execution_failed("not run: no time was left for it").with_retryable(true)
}

/// Shortens the response to at most `limit` bytes of text. The note about a truncation comes first, where the model
/// cannot miss it.
fn truncate(response: &mut ToolInvokeResponse, limit: usize) {
    let length = response.content.text_len();
    if length > limit {
        let text = response.content.text();
        let kept = text.floor_char_boundary(limit);
        let cut = format!("[result cut: the first {kept} of {length} bytes]\n{}", &text[..kept]);
        response.content.replace_text(cut);
    }
}

/// A permit to run, if the semaphore exists, and whether the call waited for it.
struct CallPermit<'a> {
    _permit: Option<SemaphorePermit<'a>>,
    has_waited: bool,
}

/// Returns a permit of each semaphore, if all have a free one.
fn free_permits([first, second]: [Option<&Semaphore>; 2]) -> Option<[CallPermit<'_>; 2]> {
    let free = |semaphore: Option<_>| {
        let permit = semaphore.map(Semaphore::try_acquire).transpose().ok()?;
        Some(CallPermit {
            _permit: permit,
            has_waited: false,
        })
    };
    Some([free(first)?, free(second)?])
}

/// Acquires a permit of each semaphore, in order.
async fn acquire_all<'a>(
    [first, second]: [Option<&'a Semaphore>; 2],
    cx: &CallContext,
) -> Result<[CallPermit<'a>; 2], ToolError> {
    Ok([acquire(first, cx).await?, acquire(second, cx).await?])
}

/// Acquires a permit, at once where one is free. Returns the error of the call if it was cancelled first, or its
/// deadline passed.
async fn acquire<'a>(semaphore: Option<&'a Semaphore>, cx: &CallContext) -> Result<CallPermit<'a>, ToolError> {
    let Some(semaphore) = semaphore else {
        return Ok(CallPermit {
            _permit: None,
            has_waited: false,
        });
    };
    if let Ok(permit) = semaphore.try_acquire() {
        return Ok(CallPermit {
            _permit: Some(permit),
            has_waited: false,
        });
    }
    let deadline = async {
        match cx.deadline() {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    // Cancel point: dropping the wait gives up the call's place in the queue, and takes no permit.
    tokio::select! {
        // In order: a permit that comes at the moment of a cancellation must not start the call.
        biased;
        () = cx.cancellation().cancelled() => Err(cancelled_first()),
        () = deadline => Err(no_time_left()),
        // These semaphores are never closed; if one were, a call without a permit would be the lesser evil.
        permit = semaphore.acquire() => Ok(CallPermit {
            _permit: permit.ok(),
            has_waited: true,
        }),
    }
}

/// Logs the panic of a tool or of a layer around it, and returns the error that the model reads.
pub(super) fn panicked(tool: &ToolName, message: &str) -> ToolError {
    tracing::error!(tool = %loggable(tool.as_str()), message = %loggable(message), "tool panicked; the call fails");
    ToolError::execution_failed("the tool failed unexpectedly; try another way")
}
