//! The checks of names and limits: an empty name or a limit of zero is a mistake, which would
//! show itself later as a turn that never answers.

use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::chat::MicroUsd;

use super::AgentHostBuilder;
use super::error::{EmptyName, ZeroLimit};
use crate::engine::{RuntimeProblem, check_runtime};

impl AgentHostBuilder {
    /// Returns the problems of names and limits, and of a runtime that the host could not work on.
    pub(super) fn check(&self, agent: &str) -> impl Iterator<Item = BoxError> {
        let names = self.names(agent).into_iter().filter(|(_, name)| name.trim().is_empty());
        let limits = self.limits().into_iter().chain(self.backlog_limits());
        let zeros = limits.filter_map(|(limit, is_zero)| is_zero.then_some(limit));
        let empty = names.map(|(thing, _)| EmptyName(thing).into());
        let problems = empty.chain(zeros.map(|limit| ZeroLimit(limit).into()));
        // A host may be built outside a runtime, and be asked within one.
        let runtime = check_runtime()
            .err()
            .filter(|problem| *problem != RuntimeProblem::Missing);
        let problems: Vec<BoxError> = problems.chain(runtime.map(BoxError::from)).collect();
        problems.into_iter()
    }

    /// Returns the names that nothing else checks; the names of tools, guides and topics are
    /// checked where they are registered.
    fn names(&self, agent: &str) -> Vec<(&'static str, String)> {
        let subsystems = self
            .subsystems
            .iter()
            .map(|part| ("a subsystem", part.name().to_owned()));
        let routes = self.messages.routes.iter();
        let routes = routes.map(|route| ("a message type", route.message_type().to_string()));
        let approvers = self.approvers.iter().map(|one| ("an approver", one.to_string()));
        [("the agent", agent.to_owned())]
            .into_iter()
            .chain(subsystems)
            .chain(routes)
            .chain(approvers)
            .collect()
    }

    /// Returns the limits of turns, calls and handlers, each with `true` if it is zero.
    fn limits(&self) -> [(&'static str, bool); 12] {
        let budget = self.policy.budget;
        let limits = self.limits;
        let context = self.context_budget;
        let is_zero = |limit: Duration| limit.is_zero();
        [
            ("Budget::max_model_calls", budget.max_model_calls == 0),
            ("Budget::max_tool_calls", budget.max_tool_calls == 0),
            ("Budget::max_wall_clock", is_zero(budget.max_wall_clock)),
            ("Budget::max_tokens", budget.max_tokens == Some(0)),
            ("Budget::max_cost", budget.max_cost == Some(MicroUsd(0))),
            ("ToolLimits::time_limit", is_zero(limits.time_limit)),
            ("ToolLimits::max_result_bytes", limits.max_result_bytes == 0),
            ("ContextBudget::max_tokens", context.max_tokens == 0),
            ("ContextBudget::time_limit", is_zero(context.time_limit)),
            ("HookLimits::time_limit", is_zero(self.policy.hooks.time_limit)),
            ("TurnPolicies::approval_expiry", is_zero(self.policy.approval_expiry)),
            (
                "MessageOptions::handler_time_limit",
                is_zero(self.messages.options.handler_time_limit),
            ),
        ]
    }

    fn backlog_limits(&self) -> [(&'static str, bool); 6] {
        let limits = self.backlog;
        [
            ("BacklogLimits::max_messages", limits.max_messages == 0),
            ("BacklogLimits::max_bytes", limits.max_bytes == 0),
            (
                "BacklogLimits::max_principal_messages",
                limits.max_principal_messages == 0,
            ),
            ("BacklogLimits::max_principal_bytes", limits.max_principal_bytes == 0),
            ("BacklogLimits::max_session_messages", limits.max_session_messages == 0),
            ("BacklogLimits::max_session_bytes", limits.max_session_bytes == 0),
        ]
    }
}
