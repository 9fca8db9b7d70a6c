//! The policies under test, and the configurations that are compared.

use rockbot::agent::{AgentHostBuilder, Stores};
use rockbot::chat::{KeywordTierSelector, ModelBehavior, ModelBehaviors};
use rockbot::store::InMemoryWorkingMemory;
use rockbot::tool::LargeResultPolicy;
use rockbot::turn::{Briefing, ContextEconomy, Evaluation, Nudges, TurnPolicies};

/// A policy that a host can switch on for its model.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) add: fn(AgentHostBuilder) -> AgentHostBuilder,
}

/// The name of the policy for models without native tool calls.
pub(crate) const TEXT_CALLS: &str = "text-calls";
/// The name of the policy that needs more than one model.
pub(crate) const TIERS: &str = "tiers";

pub(crate) static POLICIES: &[Policy] = &[
    Policy {
        name: "briefing",
        about: "tells the time and how to work",
        add: |host| host.briefing(briefing()),
    },
    Policy {
        name: "task-list",
        about: "the briefing, and tools to keep a list of what is to be done",
        add: |host| {
            let mut briefing = briefing();
            briefing.task_list = true;
            host.briefing(briefing)
        },
    },
    Policy {
        name: "nudges",
        about: "the nudges of the original: set-up, give-up, repeated calls, empty answers",
        add: |host| {
            let nudges = Nudges::default()
                .with_on_unfinished_set_up(true)
                .with_on_tool_failure_giveup(true);
            host.policies(TurnPolicies::new().with_nudges(nudges))
        },
    },
    Policy {
        name: "claims",
        about: "the nudges about claims of calls and about calls that are shown in a text",
        add: |host| {
            let nudges = nudges(false)
                .with_on_hallucinated_calls(true)
                .with_on_leaked_syntax(true);
            host.policies(TurnPolicies::new().with_nudges(nudges))
        },
    },
    Policy {
        name: "all-nudges",
        about: "every nudge",
        add: |host| host.policies(TurnPolicies::new().with_nudges(nudges(true))),
    },
    Policy {
        name: "completion",
        about: "a judge sends incomplete answers back, at most twice",
        add: |host| {
            host.policies(TurnPolicies::new().with_evaluation(Evaluation::OFF.with_max_completion_reprompts(2)))
        },
    },
    Policy {
        name: "follow-up",
        about: "a judge asks for one thing more after an answer",
        add: |host| host.policies(TurnPolicies::new().with_evaluation(Evaluation::OFF.with_max_follow_up_passes(1))),
    },
    Policy {
        name: "large-results",
        about: "results of more than 4 000 characters are kept in working memory, to be searched",
        add: |host| {
            let policy = LargeResultPolicy::default().with_threshold(4_000);
            host.policies(TurnPolicies::new().with_large_results(policy))
                .stores(Stores::new().with_working_memory(InMemoryWorkingMemory::new()))
        },
    },
    Policy {
        name: "economy",
        about: "results lose their middle beyond 8 000 bytes, requests their oldest parts beyond 6 000 tokens",
        add: |host| {
            let economy = ContextEconomy::default()
                .with_max_result_len(8_000)
                .with_watermark(6_000);
            host.policies(TurnPolicies::new().with_context_economy(economy))
                .stores(Stores::new().with_working_memory(InMemoryWorkingMemory::new()))
        },
    },
    Policy {
        name: TEXT_CALLS,
        about: "tools are called in plain text, for models or servers without native calls",
        add: |host| {
            let mut behavior = ModelBehavior::default();
            behavior.text_based_tool_calling = true;
            host.policies(TurnPolicies::new().with_model_behaviors(ModelBehaviors::new().with("", behavior)))
        },
    },
    Policy {
        name: TIERS,
        about: "simple questions go to the low model, hard ones to the high one",
        add: |host| host.tier_selector(KeywordTierSelector::default()),
    },
    #[cfg(feature = "subagents")]
    Policy {
        name: "subagents",
        about: "work can be given to subagents, whose results come later as a message",
        add: |host| host.add(rockbot::tools::subagents::Subagents::new()),
    },
    #[cfg(feature = "wisps")]
    Policy {
        name: "workers",
        about: "small tasks can be given to workers, which work side by side",
        add: |host| host.add(rockbot::tools::workers::Workers::new()),
    },
    #[cfg(feature = "wisps")]
    Policy {
        name: "wisps",
        about: "lists of calls can be run side by side, with a question to the model at the end of each",
        add: |host| host.add(rockbot::tools::wisps::Wisps::new()),
    },
];

/// Returns a briefing with the time and the working method.
fn briefing() -> Briefing {
    let mut briefing = Briefing::full().with_time_zone("UTC");
    briefing.task_list = false;
    briefing
}

/// Returns all nudges, or none.
fn nudges(on: bool) -> Nudges {
    Nudges::default()
        .with_on_unfinished_set_up(on)
        .with_on_hallucinated_calls(on)
        .with_on_leaked_syntax(on)
        .with_on_unexpected_cjk(on)
        .with_on_tool_failure_giveup(on)
        .with_on_repeated_calls(on)
}

pub(crate) fn find(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}

/// A set of policies that are on together.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    pub(crate) name: String,
    policies: Vec<&'static Policy>,
}

impl Configuration {
    /// Creates a configuration with `policies`; with `in_text`, tools are called in text.
    pub(crate) fn new(name: &str, policies: &[&'static Policy], in_text: bool) -> Self {
        let text = find(TEXT_CALLS).filter(|_| in_text);
        Self {
            name: name.to_owned(),
            policies: text.into_iter().chain(policies.iter().copied()).collect(),
        }
    }

    pub(crate) fn apply(&self, host: AgentHostBuilder) -> AgentHostBuilder {
        let host = host.policies(TurnPolicies::new().with_nudges(nudges(false)));
        self.policies.iter().fold(host, |host, policy| (policy.add)(host))
    }
}

/// Returns the base configuration, and the base with each policy of `policies`.
pub(crate) fn compared(policies: &[&'static Policy], in_text: bool) -> Vec<Configuration> {
    let base = Configuration::new("base", &[], in_text);
    let each = policies
        .iter()
        .map(|policy| Configuration::new(policy.name, &[policy], in_text));
    [base].into_iter().chain(each).collect()
}
