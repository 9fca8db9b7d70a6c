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
use rockbot_core::turn::ValueOrigin;
use rockbot_provenance::takes_address;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::endorsement::ReadMessages;
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
    takes_address: bool,
}

/// The reason why a call of a model that has read untrusted text may need an endorsement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The tool declares it.
    Declared,
    /// The call changes something.
    Changes,
    /// The call may send what the model composed to an address that the model names.
    Sends,
}

impl GuardedTool {
    /// Creates a guarded tool. A tool that states no time limit of its own gets `time_limit`.
    pub(super) fn new(entry: &Arc<ToolEntry>, time_limit: Duration, meters: Arc<Meters>) -> Self {
        let registration = entry.registration();
        let hints = &registration.hints;
        let permits = |calls: u32| Semaphore::new((calls as usize).clamp(1, Semaphore::MAX_PERMITS));
        Self {
            entry: entry.clone(),
            time_limit: hints.time_limit.unwrap_or(time_limit),
            permits: hints.max_concurrency.map(permits),
            meters,
            takes_address: takes_address(&registration.parameters_schema, &hints.argument_roles),
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

    /// Returns the doubts of a call that a person must approve because its model has read untrusted
    /// text: the origins of its values, if they are known. `None` if no person must be asked.
    pub(super) async fn doubts(
        &self,
        request: &ToolInvokeRequest,
        need: Need,
        cx: &CallContext,
    ) -> Option<Vec<ValueOrigin>> {
        if cx.content_trust() > Trust::Untrusted || self.entry.registration().is_ordered(request, cx) {
            return None;
        }
        let found = || {
            let read = cx.extension::<ReadMessages>()?;
            Some(read.doubts(self.entry.registration(), request, need == Need::Sends))
        };
        match need {
            Need::Declared if cx.trust() == Trust::Untrusted => Some(Vec::new()),
            Need::Declared => match self.stated_need(request, cx).await {
                Some(false) => None,
                Some(true) => Some(found().flatten().unwrap_or_default()),
                None => found().unwrap_or_else(|| Some(Vec::new())),
            },
            // A caller outside of a turn has no model that reads.
            Need::Changes | Need::Sends => {
                let has_outside = cx.extension::<ReadMessages>().is_some_and(ReadMessages::has_outside);
                if has_outside { found().flatten() } else { None }
            }
        }
    }

    /// Returns the reason why calls of a model that has read untrusted text may need an endorsement;
    /// `None` if they never do. Tools that do not declare it need one where the host
    /// `guards_effects`.
    pub(super) fn need(&self, effect: Effect, guards_effects: bool) -> Option<Need> {
        let hints = &self.entry.registration().hints;
        if hints.needs_endorsement {
            return Some(Need::Declared);
        }
        // The calls of a turn below are checked by themselves.
        let is_free = !guards_effects || hints.internal || hints.runs_turn || hints.trusted_effect.is_some();
        if is_free {
            None
        } else if effect != Effect::Pure {
            Some(Need::Changes)
        } else if self.takes_address && !hints.own_output {
            Some(Need::Sends)
        } else {
            None
        }
    }

    /// Asks the executor whether the call needs an endorsement; `None` if its values tell.
    async fn stated_need(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Option<bool> {
        let stated = AssertUnwindSafe(self.entry.executor().needs_endorsement(request, cx)).catch_unwind();
        let stated = stated.map(caught);
        // A panic counts as a yes, as it does for approvals, and so does a store that does not answer.
        let stated = timeout(ENDORSEMENT_TIME, stated).await.unwrap_or(Ok(Some(true)));
        stated.unwrap_or(Some(true))
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
    pub(in crate::tool) fn check_schema(&self, request: &ToolInvokeRequest, effect: Effect) -> Result<(), ToolError> {
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
