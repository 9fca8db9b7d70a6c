//! The guard around each tool call: look-up, checks, permits, time limit, isolation of panics,
//! meters.
//!
//! It is one fused future instead of a stack of layers: most tools answer at once, and each layer
//! would cost such a call more than its own work. `tools.rs` finds the tool (`table.rs` has the
//! tools of a snapshot of the registry), `guarded_tool.rs` asks it about the needs of the call,
//! `permits.rs` limits how many run, `result.rs` makes the response.

mod endorsement;
mod filtered;
mod guarded_tool;
mod indexes;
mod permits;
mod result;
mod table;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use rockbot_core::tool::{
    Effect, ToolError, ToolErrorCode, ToolFilter, ToolInvokeRequest, ToolInvokeResponse, ToolRegistry, ToolSnapshot,
};
use rockbot_core::turn::ValueOrigin;
use rockbot_core::{CallContext, ToolName};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::permits::Permits;
use self::result::{cancelled_first, no_time_left, response_to, result_of, truncate, unasked, unendorsed};
pub(super) use self::table::ToolTable;
use self::tools::GuardedTools;
use super::ToolLimits;
use super::blocking::Watched;
use crate::isolate::{Isolate, Isolated};
use crate::turn::CallFacts;

pub(crate) use self::endorsement::ReadMessages;
pub(super) use self::guarded_tool::GuardedTool;
pub(crate) use self::indexes::TextIndexes;
pub(super) use self::result::panicked;

/// Maximum number of tool names in the response to a call of an unknown tool.
const MAX_NAMED_TOOLS: usize = 40;

/// The guard around all tool calls of a host.
#[derive(Debug)]
pub(super) struct Guard {
    tools: GuardedTools,
    max_result_bytes: usize,
    max_blocking: Duration,
    guards_effects: bool,
    permits: Semaphore,
}

impl Guard {
    pub(super) fn new(registry: Arc<dyn ToolRegistry>, limits: ToolLimits, on_demand: bool) -> Self {
        Self {
            tools: GuardedTools::new(registry, limits.time_limit, on_demand),
            max_result_bytes: limits.max_result_bytes,
            max_blocking: limits.max_blocking,
            guards_effects: limits.guards_effects,
            permits: Semaphore::new(limits.max_concurrency.clamp(1, Semaphore::MAX_PERMITS)),
        }
    }

    pub(super) fn registry(&self) -> &Arc<dyn ToolRegistry> {
        &self.tools.registry
    }

    /// Returns the tools that `filter` allows, as models see them.
    pub(super) fn table_of(&self, filter: Option<&Arc<ToolFilter>>) -> Arc<ToolTable> {
        self.tools.table_of(filter)
    }

    /// Returns the tools that exist only within a turn with a task list.
    pub(super) fn task_tools(&self) -> &Arc<ToolSnapshot> {
        &self.tools.of_tasks
    }

    /// Returns the tool of the registry with this name, or with the name after a namespace of a
    /// model's own.
    pub(super) fn find(&self, name: &ToolName) -> Option<Arc<GuardedTool>> {
        self.tools.find(name)
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
        let tool = self.tools.resolve(&request.tool_name, cx);
        tool.map_or(unknown, |tool| tool.facts(request))
    }

    /// Returns the doubts of a call for which the model of `cx` needs a person's endorsement, because
    /// it has read untrusted text; `None` if it needs none.
    pub(super) async fn doubts(
        &self,
        request: &ToolInvokeRequest,
        effect: Effect,
        cx: &CallContext,
    ) -> Option<Vec<ValueOrigin>> {
        let tool = self.tools.resolve(&request.tool_name, cx)?;
        let doubts = self.doubts_of(&tool, request, effect, cx).await?;
        // No person is asked about a call that cannot run: the guard fails it.
        tool.check_schema(request, effect).is_ok().then_some(doubts)
    }

    /// Returns the doubts of a call of a tool, whether its arguments fit or not.
    async fn doubts_of(
        &self,
        tool: &GuardedTool,
        request: &ToolInvokeRequest,
        effect: Effect,
        cx: &CallContext,
    ) -> Option<Vec<ValueOrigin>> {
        let need = tool.need(effect, self.guards_effects)?;
        tool.doubts(request, need, cx).await
    }

    /// Reports whether a call with this effect may need an endorsement once its model has read
    /// untrusted text.
    pub(super) fn may_doubt(&self, name: &ToolName, effect: Effect, cx: &CallContext) -> bool {
        let tool = self.tools.resolve(name, cx);
        tool.is_some_and(|tool| tool.need(effect, self.guards_effects).is_some())
    }

    /// Reports whether the call changes something outside although the message of its turn only
    /// informs. A call that cannot run does not: the guard fails it.
    pub(super) fn is_unasked(&self, request: &ToolInvokeRequest, effect: Effect, cx: &CallContext) -> bool {
        let tool = self.tools.resolve(&request.tool_name, cx);
        tool.is_some_and(|tool| tool.is_unasked(effect, cx) && tool.check_schema(request, effect).is_ok())
    }

    /// Returns `true` if the output of the tool that a call means by `name` is its own.
    pub(super) fn has_own_output(&self, name: &ToolName, cx: &CallContext) -> bool {
        let tool = self.tools.resolve(name, cx);
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
        let Some(tool) = self.tools.resolve(&request.tool_name, cx) else {
            return self.not_found(request, cx, started);
        };
        // The approval alone is always asked here. It is the gate: since its facts were recorded,
        // before a restart perhaps, the tool may have been replaced by a tool that needs an
        // approval.
        let needs_approval = known.is_some_and(|known| known.needs_approval) || tool.needs_approval(&request);
        let effect = known.map_or_else(|| tool.effect_of(&request), |known| known.effect);
        let name = request.tool_name.as_str();
        let is_granted = cx.is_granted(&request.tool_call_id, name, &request.arguments);
        // For this call alone: a context that a call passes on endorses nothing else.
        let is_endorsed = is_granted || tool.entry.registration().is_ordered(&request, cx);
        let endorsed = (is_endorsed != cx.is_endorsed()).then(|| cx.clone().with_endorsement(is_endorsed));
        let cx = endorsed.as_ref().unwrap_or(cx);
        // After the grant was compared, which is for the arguments as the model wrote them.
        let request = tool.without_nulls(request, effect);
        let lacks_grant = needs_approval && !is_granted;
        let checked = match tool.check(&request, lacks_grant) {
            // The fault in the arguments is of more use to the model than the missing approval.
            Err(refused) if lacks_grant => Err(tool.check_schema(&request, effect).err().unwrap_or(refused)),
            Ok(()) if !is_granted && tool.is_unasked(effect, cx) => Err(unasked(request.tool_name.as_str())),
            Ok(()) if !is_granted => match self.doubts_of(&tool, &request, effect, cx).await {
                Some(doubts) => {
                    let misfit = tool.check_schema(&request, effect).err();
                    Err(misfit.unwrap_or_else(|| unendorsed(request.tool_name.as_str(), &doubts, cx)))
                }
                None => Ok(()),
            },
            checked => checked,
        };
        // A store may have been asked about the endorsement.
        let was_asked = tool.entry.registration().hints.needs_endorsement;
        let called = if was_asked { Instant::now() } else { started };
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

    /// Runs a call that may run. Sets `blocked` to the longest time that it blocked its thread,
    /// unless that is the time since `called`.
    async fn run(
        &self,
        tool: &GuardedTool,
        request: ToolInvokeRequest,
        effect: Effect,
        cx: &CallContext,
        called: Instant,
        blocked: &mut Option<Duration>,
    ) -> ToolInvokeResponse {
        // The tool's own permit first: calls that queue for a slow tool must not hold the permits
        // of all others. A call that runs a turn takes none of the common permits: the calls of
        // that turn need them.
        let runs_turn = tool.entry.registration().hints.runs_turn;
        let semaphores = [tool.permits.as_ref(), (!runs_turn).then_some(&self.permits)];
        let permits = match Permits::free(semaphores) {
            Some(permits) => Ok(permits),
            // Boxed: every call's future would have room for the wait otherwise.
            None => Box::pin(Permits::acquire(semaphores, cx)).await,
        };
        let admitted = permits.and_then(|permits| Admission::after_waits(permits, tool, cx, called));
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(error) => return request.fail(&error),
        };
        let Admission { started, limit, .. } = admitted;
        // The executor takes the request; the response needs its identity.
        let call = request.tool_call_id.clone();
        let name = request.tool_name.clone();
        let ended = match tool.start(request, cx) {
            Ok(running) => {
                let (ended, longest) = Watched::new(Isolate::new(running, started, limit), started).await;
                *blocked = longest.or_else(|| (started != called).then(|| started.elapsed()));
                ended
            }
            Err(panic) => Isolated::Panicked(panic),
        };
        let mut response = response_to(call, name.clone(), result_of(ended, &name, effect, limit));
        truncate(&mut response, self.max_result_bytes);
        response
    }

    fn not_found(&self, request: ToolInvokeRequest, cx: &CallContext, started: Instant) -> ToolInvokeResponse {
        let table = self.tools.table_of(cx.extension());
        let entries = table.snapshot.entries().iter();
        let names: Vec<_> = entries
            .map(|entry| entry.registration().name.to_string())
            .take(MAX_NAMED_TOOLS)
            .collect();
        let name = &request.tool_name;
        let message = format!("there is no tool `{name}`. The tools are: {}", names.join(", "));
        let response = request.fail(&ToolError::new(ToolErrorCode::ToolNotFound, message));
        self.tools.unknown_meters().record(&response, started.elapsed());
        response
    }
}

/// A call that has its permits and may begin.
struct Admission<'a> {
    _permits: Permits<'a>,
    started: Instant,
    limit: Duration,
}

impl<'a> Admission<'a> {
    /// Admits a call of `tool` that has waited for all that it waits for: permits, layers, the
    /// journal. A call that its caller has given up meanwhile must not begin.
    fn after_waits(
        permits: Permits<'a>,
        tool: &GuardedTool,
        cx: &CallContext,
        called: Instant,
    ) -> Result<Self, ToolError> {
        if cx.cancellation().is_cancelled() {
            return Err(cancelled_first());
        }
        // The time limit starts when the call does; without a wait, reading the clock once is enough.
        let started = if permits.has_waited { Instant::now() } else { called };
        let left = cx
            .deadline()
            .map(|deadline| deadline.saturating_duration_since(started));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(no_time_left());
        }
        Ok(Self {
            _permits: permits,
            started,
            limit: left.map_or(tool.time_limit, |left| left.min(tool.time_limit)),
        })
    }
}
