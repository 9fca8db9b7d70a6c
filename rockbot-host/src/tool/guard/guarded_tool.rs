//! A tool with its limits and meters, and the questions that the guard asks it before a call.
//!
//! A tool's answers are foreign code: a panic counts as the answer that keeps a call from running
//! without a question.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rockbot_core::CallContext;
use rockbot_core::support::caught;
use rockbot_core::tool::{Effect, ToolEntry, ToolError, ToolErrorCode, ToolInvokeRequest, without_optional_nulls};
use rockbot_core::trust::Trust;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::result::Executed;
use crate::tool::meters::Meters;
use crate::turn::CallFacts;

/// Time limit of a tool for telling whether a call needs an endorsement; later the call needs
/// one.
const ENDORSEMENT_TIME: Duration = Duration::from_secs(10);

/// A call that runs.
pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Executed> + Send + 'a>>;

/// A tool with the limits and meters of its calls.
#[derive(Debug)]
pub(in crate::tool) struct GuardedTool {
    pub(in crate::tool) entry: Arc<ToolEntry>,
    pub(in crate::tool) time_limit: Duration,
    pub(super) permits: Option<Semaphore>,
    pub(super) meters: Arc<Meters>,
}

impl GuardedTool {
    /// Creates a guarded tool. A tool that states no time limit of its own gets `time_limit`.
    pub(super) fn new(entry: &Arc<ToolEntry>, time_limit: Duration, meters: Arc<Meters>) -> Self {
        let hints = &entry.registration().hints;
        let permits = |calls: u32| Semaphore::new((calls as usize).clamp(1, Semaphore::MAX_PERMITS));
        Self {
            entry: entry.clone(),
            time_limit: hints.time_limit.unwrap_or(time_limit),
            permits: hints.max_concurrency.map(permits),
            meters,
        }
    }

    /// Returns the facts about a call before it runs.
    pub(super) fn facts(&self, request: &ToolInvokeRequest) -> CallFacts {
        let hints = &self.entry.registration().hints;
        let effect = self.effect_of(request);
        CallFacts {
            effect,
            // No person is asked about a call that cannot run: the guard fails it.
            needs_approval: self.needs_approval(request) && self.check_schema(request, effect).is_ok(),
            keeps_result_whole: hints.keeps_results_whole,
            delegates: hints.delegates,
            runs_turn: hints.runs_turn,
            own_output: hints.own_output,
        }
    }

    /// Returns the effect of the call: the executor's word, else the registration's.
    pub(super) fn effect_of(&self, request: &ToolInvokeRequest) -> Effect {
        let stated = AssertUnwindSafe(|| self.entry.executor().effect_of(request));
        let stated = caught(catch_unwind(stated)).ok().flatten();
        stated.unwrap_or(self.entry.registration().effect)
    }

    /// Reports whether a person must approve the call.
    pub(super) fn needs_approval(&self, request: &ToolInvokeRequest) -> bool {
        let stated = AssertUnwindSafe(|| self.entry.executor().needs_approval(request));
        // A panic counts as a yes: failing open would let the call through without a person.
        let stated = caught(catch_unwind(stated)).unwrap_or(Some(true));
        stated.unwrap_or(self.entry.registration().hints.needs_approval)
    }

    /// Reports whether a person must approve the call because its model has read untrusted text.
    pub(super) async fn needs_endorsement(&self, request: &ToolInvokeRequest, cx: &CallContext) -> bool {
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

    /// Reports whether a call changes something outside although the message of its turn only informs.
    pub(super) fn is_unasked(&self, effect: Effect, cx: &CallContext) -> bool {
        let hints = &self.entry.registration().hints;
        // The calls of a turn below are checked by themselves.
        let is_own = hints.internal || hints.runs_turn;
        cx.is_informing() && effect == Effect::Mutating && !is_own
    }

    /// Returns the request without `null`s for optional arguments that do not accept them: models
    /// mean to leave such arguments out. Arguments that fit the schema stay as they are, and so do
    /// the arguments of a call that changes something: without a filter it could change more, and
    /// the call must run as it was approved and recorded.
    pub(super) fn without_nulls(&self, mut request: ToolInvokeRequest, effect: Effect) -> ToolInvokeRequest {
        let given = &request.arguments;
        if effect == Effect::Pure && given.contains("null") && self.entry.arguments().check(given).is_err() {
            let left = without_optional_nulls(&self.entry.registration().parameters_schema, given);
            request.arguments = left.map_or(request.arguments, Into::into);
        }
        request
    }

    /// Checks the arguments against the tool's schema, as the call would get them, also where the
    /// executor checks them itself when it runs.
    pub(super) fn check_schema(&self, request: &ToolInvokeRequest, effect: Effect) -> Result<(), ToolError> {
        let request = self.without_nulls(request.clone(), effect);
        let checked = self.entry.arguments().check(&request.arguments);
        checked
            .map(drop)
            .map_err(|error| ToolError::of_arguments(&request.tool_name, error))
    }

    /// Checks that the call has the grant that it needs, and that its arguments fit the tool's schema.
    pub(super) fn check(&self, request: &ToolInvokeRequest, lacks_grant: bool) -> Result<(), ToolError> {
        let name = &request.tool_name;
        if lacks_grant {
            let message = format!("`{name}` needs the user's approval for each call, and this call has none");
            return Err(ToolError::new(ToolErrorCode::ApprovalRequired, message));
        }
        if self.entry.executor().checks_arguments() {
            return Ok(());
        }
        let checked = self.entry.arguments().check(&request.arguments);
        checked.map(drop).map_err(|error| ToolError::of_arguments(name, error))
    }

    /// Starts a call. Returns the message of the panic of an executor that did not even return a
    /// future.
    pub(super) fn start<'a>(&'a self, request: ToolInvokeRequest, cx: &'a CallContext) -> Result<Running<'a>, String> {
        let start = AssertUnwindSafe(|| self.entry.executor().execute(request, cx));
        caught(catch_unwind(start))
    }

    /// Reports a call that blocked its thread for longer than `allowed`.
    pub(super) fn report_blocking(&self, blocked: Duration, allowed: Duration) {
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
