//! The limits of tools, results, recall and hooks, in the section `AgentHost`.

use std::time::Duration;

use rockbot_core::config::{Config, ConfigError, FromSetting, Section, Value};
use rockbot_core::store::ChunkKeyForm;

use crate::driver::ContextBudget;
use crate::large_result::LargeResultPolicy;
use crate::tool::ToolLimits;
use crate::turn::{HookLimits, Nudges, PolicySnapshot};

/// The limits of tools, results, recall and hooks.
///
/// They are settings of the section `AgentHost`, apart from
/// [`AgentHostSettings`](super::AgentHostSettings) because a program sets them with
/// [`TurnPolicies`](crate::TurnPolicies).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicySettings {
    /// `ToolTimeLimit` (default 1 minute): maximum duration of a call whose tool states no limit of
    /// its own. `MaxConcurrentToolCalls` (default 64): maximum number of calls that run at once.
    /// `MaxToolBlocking` (default 1 second): time that a call may block its thread without a
    /// warning.
    pub tool_limits: ToolLimits,
    /// `ToolResultThreshold` (default 64 000): maximum number of characters of a result that stays
    /// in the conversation. `ToolResultTimeToLive` (default 20 minutes): retention of the chunks of
    /// a longer result. `ToolResultKeyForm` (default `path`): notation of their keys, `path` or
    /// `colons`.
    pub large_results: LargeResultPolicy,
    /// `ContextMaxTokens` (default 4 000): maximum number of tokens of the recalled entries of a
    /// message. `ContextTimeLimit` (default 2 seconds): maximum time to find them.
    pub context_budget: ContextBudget,
    /// `HookTimeLimit` (default 30 seconds): time limit of a hook's decision. `MaxPolicyQuestions`
    /// (default 3) and `MaxOutputCorrections` (default 2): maximum numbers of answers that loop
    /// policies and output validators send back.
    pub hook_limits: HookLimits,
    /// `Nudges.OnEmptyAnswer`, `Nudges.OnRepeatedCalls` and `Nudges.OnHallucinatedCalls` (default
    /// `true`), `Nudges.OnUnfinishedSetUp`, `Nudges.OnLeakedSyntax`, `Nudges.OnUnexpectedCjk` and `Nudges.OnToolFailureGiveup` (default `false`): the weaknesses of
    /// models that are answered with a nudge.
    pub nudges: Nudges,
    /// `ApprovalExpiry` (default 7 days): time that a turn waits for a user's decision about a call.
    pub approval_expiry: Duration,
    /// `HasApprover` (default `true`): `false` if no person decides about calls; calls that need an
    /// approval are then refused.
    pub has_approver: bool,
}

impl PolicySettings {
    pub(super) fn read(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("AgentHost")?;
        let tools = ToolLimits::default();
        let results = LargeResultPolicy::default();
        let context = ContextBudget::default();
        let hooks = HookLimits::default();
        let key_form = section.get::<KeyForm>("ToolResultKeyForm")?;
        Ok(Self {
            tool_limits: tools
                .with_time_limit(section.interval("ToolTimeLimit", tools.time_limit)?)
                .with_max_blocking(section.interval("MaxToolBlocking", tools.max_blocking)?)
                .with_max_concurrency(section.get_or("MaxConcurrentToolCalls", tools.max_concurrency)?)
                .with_guards_effects(section.get_or("GuardEffects", tools.guards_effects)?)
                .with_plans_effects(section.get_or("PlanEffects", tools.plans_effects)?),
            large_results: LargeResultPolicy {
                threshold: section.get_or("ToolResultThreshold", results.threshold)?,
                ttl: section.interval("ToolResultTimeToLive", results.ttl)?,
                key_form: key_form.map_or(results.key_form, |form| form.0),
                ..results
            },
            context_budget: ContextBudget {
                max_tokens: section.get_or("ContextMaxTokens", context.max_tokens)?,
                time_limit: section.interval("ContextTimeLimit", context.time_limit)?,
            },
            hook_limits: hooks
                .with_time_limit(section.interval("HookTimeLimit", hooks.time_limit)?)
                .with_max_policy_questions(section.get_or("MaxPolicyQuestions", hooks.max_policy_questions)?)
                .with_max_corrections(section.get_or("MaxOutputCorrections", hooks.max_corrections)?),
            nudges: nudges(&section.section("Nudges")?)?,
            approval_expiry: section.interval("ApprovalExpiry", PolicySnapshot::default().approval_expiry)?,
            has_approver: section.get_or("HasApprover", true)?,
        })
    }
}

fn nudges(section: &Section<'_>) -> Result<Nudges, ConfigError> {
    let nudges = Nudges::default();
    Ok(Nudges {
        on_unfinished_set_up: section.get_or("OnUnfinishedSetUp", nudges.on_unfinished_set_up)?,
        on_hallucinated_calls: section.get_or("OnHallucinatedCalls", nudges.on_hallucinated_calls)?,
        on_leaked_syntax: section.get_or("OnLeakedSyntax", nudges.on_leaked_syntax)?,
        on_unexpected_cjk: section.get_or("OnUnexpectedCjk", nudges.on_unexpected_cjk)?,
        on_tool_failure_giveup: section.get_or("OnToolFailureGiveup", nudges.on_tool_failure_giveup)?,
        on_repeated_calls: section.get_or("OnRepeatedCalls", nudges.on_repeated_calls)?,
        on_empty_answer: section.get_or("OnEmptyAnswer", nudges.on_empty_answer)?,
    })
}

struct KeyForm(ChunkKeyForm);

impl FromSetting for KeyForm {
    const EXPECTED: &'static str = "`path` or `colons`";

    fn from_value(value: &Value) -> Option<Self> {
        match value.as_text()?.to_ascii_lowercase().as_str() {
            "path" => Some(Self(ChunkKeyForm::Path)),
            "colons" => Some(Self(ChunkKeyForm::Colons)),
            _ => None,
        }
    }
}
