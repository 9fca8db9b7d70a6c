//! [`TurnPolicies`]: the settings of the rules by which turns decide.

use std::sync::Arc;
use std::time::Duration;

use super::AgentHostBuilder;
use crate::behavior::ModelBehaviors;
use crate::driver::ContextBudget;
use crate::large_result::LargeResultPolicy;
use crate::live::BacklogLimits;
use crate::settings::PolicySettings;
use crate::tool::ToolLimits;
use crate::turn::{ContextEconomy, Evaluation, HookLimits, Nudges};

/// The settings of the rules for a turn's decisions, for [`AgentHostBuilder::policies`].
///
/// A field that is `None` keeps the value that was set before, by [`AgentHostBuilder::settings`]
/// for example, and else has the default that its documentation states.
/// [`AgentHostBuilder::budget`] is apart, since most hosts set it.
///
/// The worth of nudges, self-evaluation and compaction depends on the model, and each has a cost.
/// The example `evaluate` runs tasks against your model with each of them on and off.
///
/// # Examples
///
/// ```
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::turn::{ContextEconomy, Evaluation};
/// use rockbot_host::{AgentHost, HostState, TurnPolicies};
///
/// let mut evaluation = Evaluation::OFF;
/// evaluation.max_completion_reprompts = 2;
/// let policies = TurnPolicies::new()
///     .with_evaluation(evaluation)
///     .with_context_economy(ContextEconomy::default().with_watermark(30_000));
/// let host = AgentHost::in_memory().chat(ScriptedModel::new()).policies(policies).build()?;
/// assert_eq!(host.state(), HostState::Built);
/// # Ok::<_, rockbot_host::BuildError>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TurnPolicies {
    /// The weaknesses of models that are answered with a nudge. Default [`Nudges::default`], which
    /// enables the nudges that act where the turn would fail or run in circles.
    pub nudges: Option<Nudges>,
    /// The limits of self-evaluation. Default [`Evaluation::OFF`].
    pub evaluation: Option<Evaluation>,
    /// The limits of the conversation's length. By default nothing is removed until a model refuses a
    /// request as too long.
    pub context_economy: Option<ContextEconomy>,
    /// The amount of recalled entries that a message is shown with. Default [`ContextBudget::default`].
    pub context_budget: Option<ContextBudget>,
    /// The length above which a tool result is offloaded. It is then kept in chunks in the agent's
    /// working memory, and the model reads an index and gets tools to read the chunks; without a
    /// working memory the model reads only the beginning. Default [`LargeResultPolicy::default`].
    pub large_results: Option<LargeResultPolicy>,
    /// The time limit and the concurrency of tool calls. Default [`ToolLimits::default`].
    pub tool_limits: Option<ToolLimits>,
    /// The time that a turn waits for a user's decision about a tool call. Default 7 days.
    pub approval_expiry: Option<Duration>,
    /// `true` if a person decides about calls that need an approval; `false` if such calls are
    /// refused at once, because the host runs without such a person. Default `true`.
    pub has_approver: Option<bool>,
    /// The limits of hooks, such as [`AgentHostBuilder::loop_policy`]. Default [`HookLimits::default`].
    pub hook_limits: Option<HookLimits>,
    /// The exceptions for particular models. Default: none.
    pub model_behaviors: Option<Arc<ModelBehaviors>>,
    /// `true` if calls that a model wrote into its text are executed although it was offered native
    /// calls; see [`TextCallFallback`](crate::text_calling::TextCallFallback). Default `true`.
    pub text_call_fallback: Option<bool>,
    /// `true` if models see some tools only on demand, as their
    /// [`ToolExposure`](rockbot_core::tool::ToolExposure) states; `false` if they see all tools in
    /// every request. Default `true`.
    pub tools_on_demand: Option<bool>,
    /// The bounds of the messages that are accepted and not answered. Default
    /// [`BacklogLimits::default`].
    pub backlog: Option<BacklogLimits>,
}

impl From<&PolicySettings> for TurnPolicies {
    fn from(settings: &PolicySettings) -> Self {
        Self::new()
            .with_tool_limits(settings.tool_limits)
            .with_large_results(settings.large_results.clone())
            .with_context_budget(settings.context_budget)
            .with_hook_limits(settings.hook_limits)
            .with_nudges(settings.nudges)
            .with_approval_expiry(settings.approval_expiry)
            .with_has_approver(settings.has_approver)
    }
}

impl TurnPolicies {
    /// Creates policies that are all unset.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the weaknesses of models that are answered with a nudge.
    #[must_use]
    pub fn with_nudges(mut self, nudges: Nudges) -> Self {
        self.nudges = Some(nudges);
        self
    }

    /// Sets the limits of self-evaluation.
    #[must_use]
    pub fn with_evaluation(mut self, evaluation: Evaluation) -> Self {
        self.evaluation = Some(evaluation);
        self
    }

    /// Sets the limits of the conversation's length.
    #[must_use]
    pub fn with_context_economy(mut self, economy: ContextEconomy) -> Self {
        self.context_economy = Some(economy);
        self
    }

    /// Sets the amount of recalled entries that a message is shown with.
    #[must_use]
    pub fn with_context_budget(mut self, budget: ContextBudget) -> Self {
        self.context_budget = Some(budget);
        self
    }

    /// Sets the length above which a tool result is offloaded.
    #[must_use]
    pub fn with_large_results(mut self, policy: LargeResultPolicy) -> Self {
        self.large_results = Some(policy);
        self
    }

    /// Sets the time limit and the concurrency of tool calls.
    #[must_use]
    pub fn with_tool_limits(mut self, limits: ToolLimits) -> Self {
        self.tool_limits = Some(limits);
        self
    }

    /// Sets the time that a turn waits for a user's decision about a tool call.
    #[must_use]
    pub fn with_approval_expiry(mut self, expiry: Duration) -> Self {
        self.approval_expiry = Some(expiry);
        self
    }

    /// Sets whether a person decides about calls that need an approval.
    #[must_use]
    pub fn with_has_approver(mut self, has_approver: bool) -> Self {
        self.has_approver = Some(has_approver);
        self
    }

    /// Sets the limits of hooks.
    #[must_use]
    pub fn with_hook_limits(mut self, limits: HookLimits) -> Self {
        self.hook_limits = Some(limits);
        self
    }

    /// Sets the exceptions for particular models.
    #[must_use]
    pub fn with_model_behaviors(mut self, behaviors: impl Into<Arc<ModelBehaviors>>) -> Self {
        self.model_behaviors = Some(behaviors.into());
        self
    }

    /// Sets whether calls that a model wrote into its text are executed although it was offered
    /// native calls.
    #[must_use]
    pub fn with_text_call_fallback(mut self, executes: bool) -> Self {
        self.text_call_fallback = Some(executes);
        self
    }

    /// Sets whether models see some tools only on demand.
    #[must_use]
    pub fn with_tools_on_demand(mut self, on_demand: bool) -> Self {
        self.tools_on_demand = Some(on_demand);
        self
    }

    /// Sets the bounds of the messages that are accepted and not answered.
    #[must_use]
    pub fn with_backlog(mut self, limits: BacklogLimits) -> Self {
        self.backlog = Some(limits);
        self
    }
}

impl AgentHostBuilder {
    /// Sets the rules for the decisions of turns. A field that is `None` keeps the value that was
    /// set before.
    pub fn policies(mut self, policies: TurnPolicies) -> Self {
        let snapshot = &mut self.policy;
        set(&mut snapshot.nudges, policies.nudges);
        set(&mut snapshot.evaluation, policies.evaluation);
        set(&mut snapshot.economy, policies.context_economy);
        set(&mut snapshot.hooks, policies.hook_limits);
        set(&mut snapshot.approval_expiry, policies.approval_expiry);
        set(&mut snapshot.has_no_approver, policies.has_approver.map(|has| !has));
        set(&mut self.context_budget, policies.context_budget);
        set(&mut self.large_results, policies.large_results);
        set(&mut self.limits, policies.tool_limits);
        set(&mut self.behaviors, policies.model_behaviors);
        set(&mut self.text_call_fallback, policies.text_call_fallback);
        set(&mut self.tools_on_demand, policies.tools_on_demand);
        set(&mut self.backlog, policies.backlog);
        self
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
