//! The contract for authors of tools: limits that hold, honest time-outs, approvals by argument,
//! tools that come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{
    Effect, InMemoryToolRegistry, Owner, RegistryError, Tool, ToolError, ToolErrorCode, ToolExecutor,
    ToolInvokeRequest, ToolInvokeResponse, ToolRegistration, ToolRegistry, tool,
};
use rockbot_core::{BoxError, CallContext};
use rockbot_host::tool::{ToolDispatcher, ToolLimits};
use rockbot_host::{TurnError, tool_fn};
use serde_json::json;
use tower::timeout::TimeoutLayer;

use crate::support::{Anything, host_of, noting_tool, request, results};

fn dispatcher(tool: Tool) -> ToolDispatcher {
    let registry = InMemoryToolRegistry::new();
    registry.register(&Owner::new("tests"), tool).unwrap();
    ToolDispatcher::new(Arc::new(registry), ToolLimits::default())
}

/// A tool that notes how many of its calls run at once.
fn crowded_tool(running: &Arc<AtomicUsize>, most: &Arc<AtomicUsize>) -> Tool {
    let running = running.clone();
    let most = most.clone();
    let run = move |_: Anything| {
        let running = running.clone();
        let most = most.clone();
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            running.fetch_sub(1, Ordering::SeqCst);
        }
    };
    tool("crowd", run).description("Crowds.").max_concurrency(1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_limit_of_calls_at_once_holds_from_the_first_call_on() {
    let running = Arc::default();
    let most = Arc::default();
    for _ in 0..300 {
        let dispatcher = Arc::new(dispatcher(crowded_tool(&running, &most)));
        let together = Arc::new(tokio::sync::Barrier::new(4));
        let call = |_| {
            let dispatcher = dispatcher.clone();
            let together = together.clone();
            tokio::spawn(async move {
                together.wait().await;
                dispatcher
                    .call(request("1", "crowd", "{}"), &CallContext::new("s"))
                    .await
            })
        };
        for call in (0..4).map(call).collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap().content, "done");
        }
        assert_eq!(most.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_ends_a_mutating_call_says_that_it_may_have_taken_effect() {
    let advice = "it may or may not have taken effect, so check before you try it again";
    let harmless = "it may be tried again, perhaps with less to do";
    for (tool, advice) in [(mock_tool("act"), advice), (mock_tool("act"), harmless)] {
        let (tool, _handle) = tool;
        let tool = if advice == harmless { tool.pure() } else { tool };
        let model = ScriptedModel::new().calls("act", json!({})).says("done");
        let limit = TimeoutLayer::new(Duration::from_secs(1));
        let host = host_of(&model).tool(tool).tool_layer(limit).build().unwrap();
        host.agent().ask("s", "go").await.unwrap();
        let expected = format!("call_1: the tool exceeded its time limit; {advice}");
        assert_eq!(results(&model.requests()[1]), [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn any_time_out_of_a_layer_around_a_mutating_call_leaves_its_outcome_unknown() {
    let advice = "it may or may not have taken effect, so check before you try it again";
    let of_tokio = || async {
        let waited = tokio::time::timeout(Duration::ZERO, std::future::pending::<()>()).await;
        BoxError::from(waited.unwrap_err())
    };
    let of_io = BoxError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    let own = BoxError::from(ToolError::new(ToolErrorCode::Timeout, "the proxy gave up"));
    for (error, text) in [
        (of_tokio().await, "deadline has elapsed"),
        (of_io, "timed out"),
        (own, "the proxy gave up"),
    ] {
        let error = Arc::new(std::sync::Mutex::new(Some(error)));
        let failing = tool_fn(move |call, next| {
            let error = error.lock().unwrap().take();
            async move {
                next.call(call).await?;
                Err(error.expect("one call is made"))
            }
        });
        let (act, _) = noting_tool("act");
        let model = ScriptedModel::new().calls("act", json!({})).says("done");
        let host = host_of(&model)
            .tool(act.effect(Effect::Mutating))
            .tool_layer(failing)
            .build()
            .unwrap();
        let outcome = host.agent().ask("s", "go").await.unwrap();
        assert_eq!(results(&model.requests()[1]), [format!("call_1: {text}; {advice}")]);
        assert!(outcome.calls[0].is_error);
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_out_is_retryable_only_where_calling_again_does_no_harm() {
    for (is_mutating, code) in [(false, ToolErrorCode::Timeout), (true, ToolErrorCode::OutcomeUnknown)] {
        let (tool, _handle) = mock_tool("act");
        let tool = if is_mutating { tool } else { tool.idempotent() };
        let dispatcher = dispatcher(tool.time_limit(Duration::from_secs(1)));
        let response = dispatcher.call(request("1", "act", "{}"), &CallContext::new("s")).await;
        assert_eq!(response.code, Some(code));
        assert_eq!(code.retry_helps(), !is_mutating);
    }
}

/// Pays; more than ten only with an approval.
#[derive(Debug)]
struct Pay;

#[async_trait]
impl ToolExecutor for Pay {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let paid = format!("paid {}", request.arguments);
        Ok(request.succeed(paid))
    }

    fn needs_approval(&self, request: &ToolInvokeRequest) -> Option<bool> {
        assert!(
            request.arguments.contains("amount"),
            "only a call with an amount can be judged"
        );
        Some(request.arguments.len() > r#"{"amount":10}"#.len())
    }
}

fn pay() -> Tool {
    let schema = json!({"type": "object", "properties": {"amount": {"type": "integer"}}});
    Tool::new(ToolRegistration::new("pay", "Pays.", schema), Pay)
}

#[tokio::test]
async fn a_tool_decides_by_its_arguments_what_needs_approval() {
    let model = ScriptedModel::new()
        .calls("pay", json!({"amount": 10}))
        .calls("pay", json!({"amount": 100}))
        .says("paid both");
    let host = host_of(&model).tool(pay()).build().unwrap();
    let Err(TurnError::NeedsApproval(parked)) = host.agent().ask("s", "pay").await else {
        panic!("the second payment waits for a person");
    };
    assert_eq!(results(&model.requests()[1]), [r#"call_1: paid {"amount":10}"#]);
    let asked = host.agent().approvals();
    let asked: Vec<_> = asked.iter().map(|approval| approval.arguments.as_str()).collect();
    assert_eq!(asked, [r#"{"amount":100}"#]);
    host.agent()
        .decide(host.agent().approvals()[0].approve())
        .await
        .unwrap();
    let outcome = host.agent().outcome(&parked.turn).await.unwrap();
    assert_eq!(outcome.text, "paid both");
}

#[tokio::test]
async fn the_tools_own_word_on_approvals_is_kept_for_every_caller() {
    let call = async |tool: Tool, arguments: &str| {
        let dispatcher = dispatcher(tool);
        let cx = CallContext::new("s");
        dispatcher.call(request("1", "pay", arguments), &cx).await.code
    };
    let required = Some(ToolErrorCode::ApprovalRequired);
    assert_eq!(call(pay(), r#"{"amount":100}"#).await, required);
    assert_eq!(call(pay(), r#"{"amount":10}"#).await, None);
    assert_eq!(
        call(pay().needs_approval(), r#"{"amount":10}"#).await,
        None,
        "the tool knows its arguments better than its registration"
    );
    assert_eq!(call(pay(), "{}").await, required, "a panic is no way around it");
}

#[tokio::test]
async fn tools_come_and_go_while_the_host_runs() {
    let model = ScriptedModel::new()
        .says("hello")
        .calls("late", json!({"n": 1}))
        .says("used")
        .calls("late", json!({"n": 2}))
        .says("gone");
    let (first, _) = noting_tool("first");
    let host = host_of(&model).tool(first).build().unwrap();
    host.agent().ask("s", "hi").await.unwrap();

    let (late, notes) = noting_tool("late");
    host.add_tool(late.clone()).unwrap();
    assert!(matches!(host.add_tool(late), Err(RegistryError::Duplicate(_))));
    host.agent().ask("s", "use it").await.unwrap();
    assert!(host.remove_tool(&"late".into()).unwrap());
    assert!(!host.remove_tool(&"late".into()).unwrap());
    assert!(host.remove_tool(&"first".into()).unwrap(), "also one of the builder's");
    host.agent().ask("s", "use it again").await.unwrap();

    let shown: Vec<_> = model
        .requests()
        .iter()
        .map(|request| request.tools.names().count())
        .collect();
    assert_eq!(shown, [1, 2, 2, 0, 0]);
    assert_eq!(notes.all(), ["late 1"]);
}

#[tokio::test]
async fn a_host_removes_only_its_own_tools_and_a_failed_build_leaves_none() {
    let registry = Arc::new(InMemoryToolRegistry::new());
    let (foreign, _) = noting_tool("foreign");
    registry.register(&Owner::new("somebody"), foreign).unwrap();
    let (own, _) = noting_tool("own");
    let failed = rockbot_host::AgentHost::in_memory()
        .registry(registry.clone())
        .tool(own.clone())
        .build();
    assert!(failed.is_err(), "it has no model");

    let host = host_of(&ScriptedModel::new())
        .registry(registry)
        .tool(own)
        .build()
        .unwrap();
    let refused = host.remove_tool(&"foreign".into());
    assert!(matches!(refused, Err(RegistryError::NotOwner { .. })));
    assert!(host.tools().snapshot().find("foreign").is_some());
}

#[tokio::test]
async fn a_result_of_any_size_arrives_whole_or_says_that_it_was_cut() {
    let limits = ToolLimits::default();
    for text in [
        String::new(),
        "a\0b\0".to_owned(),
        "x".repeat(500_000),
        "é".repeat(5 << 20),
    ] {
        let returned = text.clone();
        let tool = tool("big", move |_: Anything| std::future::ready(returned.clone())).description("Returns a text.");
        let response = dispatcher(tool)
            .call(request("1", "big", "{}"), &CallContext::new("s"))
            .await;
        assert_eq!(response.content, text);
    }
    // The limit falls into a character: it goes to neither side.
    let text = format!("x{}", "é".repeat(6 << 20));
    let length = text.len();
    let kept = limits.max_result_bytes - 1;
    let expected = format!("[result cut: the first {kept} of {length} bytes]\n{}", &text[..kept]);
    let tool = tool("big", move |_: Anything| std::future::ready(text.clone())).description("Returns a text.");
    let response = dispatcher(tool)
        .call(request("1", "big", "{}"), &CallContext::new("s"))
        .await;
    assert!(response.content == expected, "{}", &response.content.text()[..80]);
}
