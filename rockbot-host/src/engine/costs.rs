//! The costs of an engine's own parts in model calls and tokens.
//!
//! An answer carries its price in the journal: the price that the provider reports, else the
//! price that the host's `Pricing` computes for the model that the answer names (else its
//! client). Without either the price is unknown, and never zero. A replay counts the same. Judges
//! count on their tier, and a tier that a chat layer chose counts instead of the turn's. A host
//! with a limit in money refuses a model without a price, and a turn with such a limit ends at
//! its first answer without a price. A call that is cut off counts with an estimate of its tokens
//! (`TurnEvent::ModelCutOff`).

use rockbot_core::subsystem::PartCost;

use super::TurnEngine;
use crate::turn::Nudges;

/// Converts bytes to an estimate of tokens.
pub(crate) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

impl TurnEngine {
    /// Returns the cost of each of its parts: texts that stand in requests first, then parts that
    /// ask models once more.
    pub(crate) fn costs(&self) -> Vec<PartCost> {
        let mut costs = self.texts();
        costs.extend(self.questions());
        costs
    }

    fn texts(&self) -> Vec<PartCost> {
        let calls = format!(
            "up to {} in a turn, all further calls included",
            self.policy.budget.max_model_calls
        );
        let sources = self.sources.sources.len();
        let recall = match sources {
            0 => PartCost::off("recall").with_switch("`Memory`"),
            count => PartCost::on(format!("recall ({count} sources)"))
                .with_message_tokens(self.sources.budget.max_tokens as u64),
        };
        vec![
            PartCost::on("turns")
                .with_switch("`AgentHost.MaxToolIterations`")
                .with_model_calls(calls),
            PartCost::on("instructions").with_request_tokens(tokens(self.agents.own.prompt.current().len())),
            self.briefing_cost(),
            recall.with_switch("`AgentHost.ContextMaxTokens`"),
        ]
    }

    fn briefing_cost(&self) -> PartCost {
        let zone = self.briefing.default_zone();
        let steps = Some(self.policy.budget.max_model_calls);
        let texts = self.briefing.messages(&*self.clock, zone, steps);
        let task_list = self.tools.view(None, true, &[]).json().len() - self.tools.view(None, false, &[]).json().len();
        let task_list = if self.policy.task_list { task_list } else { 0 };
        let message_tokens = texts.map(|message| tokens(message.text().len())).sum();
        let cost = match message_tokens + tokens(task_list) {
            0 => PartCost::off("briefing"),
            _ => PartCost::on("briefing"),
        };
        cost.with_switch("`AgentHost.DateTime`, `AgentHost.WorkingMethod`")
            .with_request_tokens(tokens(task_list))
            .with_message_tokens(message_tokens)
    }

    fn questions(&self) -> Vec<PartCost> {
        let policy = &self.policy;
        let hooks = &self.driver.hooks;
        let evaluation = policy.evaluation;
        let judge = |max| format!("in a turn up to {max} of a judge on the low tier, and what its verdicts prolong");
        let own = |max| format!("up to {max} more in a turn, besides your own");
        let nudges = nudges(&policy.nudges);
        vec![
            counted("completion judge", evaluation.max_completion_reprompts, judge)
                .with_switch("`AgentHost.MaxCompletionReprompts`"),
            counted("follow-up", evaluation.max_follow_up_passes, judge).with_switch("`AgentHost.MaxFollowUpPasses`"),
            counted(&format!("nudges ({})", nudges.join(", ")), nudges.len() as u32, |max| {
                format!("up to {max} more in a turn, when a weakness shows")
            })
            .with_switch("`ModelBehaviors`"),
            match self.router {
                Some(_) => PartCost::on("tier selector"),
                None => PartCost::off("tier selector"),
            }
            .with_switch("`LLM.Low`, `LLM.High`"),
            counted(
                "loop policies",
                asked(hooks.policies.len(), policy.hooks.max_policy_questions),
                own,
            )
            .with_switch("`AgentHostBuilder::loop_policy`"),
            counted(
                "output validators",
                asked(hooks.validators.len(), policy.hooks.max_corrections),
                own,
            )
            .with_switch("`AgentHostBuilder::output_validator`"),
        ]
    }
}

/// Returns the cost of a part that causes up to `max` calls, and is off without any.
fn counted(part: &str, max: u32, calls: impl FnOnce(u32) -> String) -> PartCost {
    match max {
        0 => PartCost::off(part.to_owned()),
        max => PartCost::on(part.to_owned()).with_model_calls(calls(max)),
    }
}

/// Returns how often hooks may ask a model, which is never without a hook.
fn asked(hooks: usize, max: u32) -> u32 {
    if hooks == 0 { 0 } else { max }
}

/// Returns the names of the nudges that are on and ask the model once more.
fn nudges(nudges: &Nudges) -> Vec<&'static str> {
    let all = [
        ("unfinished set-up", nudges.on_unfinished_set_up),
        ("claimed calls", nudges.on_hallucinated_calls),
        ("leaked syntax", nudges.on_leaked_syntax),
        ("unexpected script", nudges.on_unexpected_cjk),
        ("giving up", nudges.on_tool_failure_giveup),
        ("empty answer", nudges.on_empty_answer),
    ];
    all.into_iter()
        .filter_map(|(name, is_on)| is_on.then_some(name))
        .collect()
}
