//! Mistakes in names, limits and the runtime, which the builder reports before a message is lost
//! to them.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use rockbot_core::BoxError;
use rockbot_core::chat::MicroUsd;
use rockbot_core::messaging::MessageContext;
use rockbot_core::subsystem::{Declarations, Parts, Running, Subsystem};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{StaticGuide, tool};
use rockbot_core::turn::Budget;
use rockbot_host::bus::InProcessBus;
use rockbot_host::tool::ToolLimits;
use rockbot_host::turn::HookLimits;
use rockbot_host::{
    AgentHost, AgentHostBuilder, BacklogLimits, ContextBudget, HostState, MessageOptions, StartError, TurnPolicies,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::runtime::{Builder, Runtime};

/// A subsystem without a name.
#[derive(Debug)]
struct Nameless;

#[async_trait]
impl Subsystem for Nameless {
    fn name(&self) -> &str {
        ""
    }

    fn declare(&mut self, _: &mut Declarations) -> Result<(), BoxError> {
        Ok(())
    }

    async fn start(self: Box<Self>, _: &Parts) -> Result<Box<dyn Running>, BoxError> {
        Err("it is never started".into())
    }
}

/// Looks.
#[derive(Deserialize, JsonSchema)]
struct Look {}

fn host() -> AgentHostBuilder {
    AgentHost::in_memory().chat(ScriptedModel::new())
}

fn worker() -> AgentHostBuilder {
    let handler = async |_: serde_json::Value, _: MessageContext| {};
    let host = host().bus(InProcessBus::new()).subscribe_to("work.#");
    host.handle_named::<serde_json::Value, _>("work.Job", handler)
}

#[tokio::test]
async fn empty_names_are_reported() {
    let job = async |_: serde_json::Value, _: MessageContext| {};
    let name = "is empty: give it a name";
    let topic = "topic `` has an empty segment";
    for (builder, expected) in [
        (
            AgentHost::builder("").chat(ScriptedModel::new()),
            "the name of the agent is empty",
        ),
        (AgentHost::builder(" ").chat(ScriptedModel::new()), name),
        (host().add(Nameless), "the name of a subsystem is empty"),
        (host().approver(""), "the name of an approver is empty"),
        (
            worker().handle_named::<serde_json::Value, _>("", job),
            "the name of a message type is empty",
        ),
        (host().tool(tool("", async |_: Look| "")), "1 to 64 characters"),
        (
            host().guide(StaticGuide::new("", "How to.", "Just do.")),
            "1 to 64 characters",
        ),
        (worker().subscribe_to(""), topic),
        (
            worker()
                .serve_tools()
                .message_options(MessageOptions::new().with_tool_topic("")),
            topic,
        ),
        (
            worker().message_options(MessageOptions::new().with_reply_topics([""])),
            topic,
        ),
    ] {
        let error = builder.build().map(drop).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[tokio::test]
async fn limits_of_zero_are_reported() {
    let budget = |budget: Budget| host().budget(budget);
    let policies = |policies: TurnPolicies| host().policies(policies);
    let tools = |limits: ToolLimits| policies(TurnPolicies::new().with_tool_limits(limits));
    let context = |budget: ContextBudget| policies(TurnPolicies::new().with_context_budget(budget));
    let backlog = |limits: BacklogLimits| policies(TurnPolicies::new().with_backlog(limits));
    let hooks = HookLimits::default().with_time_limit(Duration::ZERO);
    let handlers = MessageOptions::new().with_handler_time_limit(Duration::ZERO);
    for (builder, limit) in [
        (
            budget(Budget::default().with_max_model_calls(0)),
            "Budget::max_model_calls",
        ),
        (
            budget(Budget::default().with_max_tool_calls(0)),
            "Budget::max_tool_calls",
        ),
        (
            budget(Budget::default().with_max_wall_clock(Duration::ZERO)),
            "Budget::max_wall_clock",
        ),
        (budget(Budget::default().with_max_tokens(0)), "Budget::max_tokens"),
        (budget(Budget::default().with_max_cost(MicroUsd(0))), "Budget::max_cost"),
        (
            tools(ToolLimits::default().with_time_limit(Duration::ZERO)),
            "ToolLimits::time_limit",
        ),
        (
            tools(ToolLimits::default().with_max_result_bytes(0)),
            "ToolLimits::max_result_bytes",
        ),
        (
            context(ContextBudget::default().with_max_tokens(0)),
            "ContextBudget::max_tokens",
        ),
        (
            context(ContextBudget::default().with_time_limit(Duration::ZERO)),
            "ContextBudget::time_limit",
        ),
        (
            policies(TurnPolicies::new().with_hook_limits(hooks)),
            "HookLimits::time_limit",
        ),
        (
            policies(TurnPolicies::new().with_approval_expiry(Duration::ZERO)),
            "TurnPolicies::approval_expiry",
        ),
        (host().message_options(handlers), "MessageOptions::handler_time_limit"),
        (
            backlog(BacklogLimits::new().with_max_messages(0)),
            "BacklogLimits::max_messages",
        ),
        (
            backlog(BacklogLimits::new().with_max_bytes(0)),
            "BacklogLimits::max_bytes",
        ),
        (
            backlog(BacklogLimits::new().with_max_principal_messages(0)),
            "BacklogLimits::max_principal_messages",
        ),
        (
            backlog(BacklogLimits::new().with_max_principal_bytes(0)),
            "BacklogLimits::max_principal_bytes",
        ),
        (
            backlog(BacklogLimits::new().with_max_session_messages(0)),
            "BacklogLimits::max_session_messages",
        ),
        (
            backlog(BacklogLimits::new().with_max_session_bytes(0)),
            "BacklogLimits::max_session_bytes",
        ),
    ] {
        let error = builder.build().map(drop).unwrap_err().to_string();
        let expected = format!("`{limit}` is zero, so no message could be answered within it");
        assert!(error.contains(&expected), "{limit}: {error}");
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// Asks in every way, and stops the host.
async fn check_that_nothing_runs(host: AgentHost, expected: &str) {
    let agent = host.agent();
    assert_eq!(agent.ask("s", "Hi!").await.map(drop).unwrap_err().to_string(), expected);
    let reports: Vec<_> = agent.stream("s", "Hi!").collect().await;
    let reports: Vec<_> = reports
        .into_iter()
        .map(|report| report.unwrap_err().to_string())
        .collect();
    assert_eq!(reports, [expected]);
    assert_eq!(host.resume().await.unwrap_err().to_string(), expected);
    assert_eq!(host.start().await.unwrap_err().to_string(), expected);
    host.shutdown(Duration::from_secs(1)).await;
    assert_eq!(host.state(), HostState::Stopped);
}

#[test]
fn a_turn_outside_a_runtime_is_an_error() {
    let expected = "there is no tokio runtime here: call this within one, such as in a function with `#[tokio::main]`";
    let host = host().build().unwrap();
    let checked = check_that_nothing_runs(host, expected).now_or_never();
    assert!(checked.is_some(), "nothing is waited for");
}

#[test]
fn a_turn_on_a_runtime_without_timers_is_an_error() {
    let expected = "the tokio runtime has no timers: call `enable_all()` or `enable_time()` on its builder";
    let host = host().build().unwrap();
    runtime().block_on(check_that_nothing_runs(host, expected));
}

#[test]
fn a_runtime_without_timers_is_an_error_of_the_build_and_of_the_start() {
    let expected = "the tokio runtime has no timers: call `enable_all()` or `enable_time()` on its builder";
    let built = runtime().block_on(async { host().build() });
    let error = built.map(drop).unwrap_err();
    assert_eq!(error.to_string(), format!("the agent host cannot be built: {expected}"));

    let host = host().build().unwrap();
    let error = runtime().block_on(host.start()).map(drop).unwrap_err();
    assert!(matches!(error, StartError::NoTimers), "{error:?}");
    assert_eq!((error.to_string().as_str(), error.retry_helps()), (expected, false));
}
