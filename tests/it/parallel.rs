//! The calls of one answer: pure ones run in parallel, mutating ones alone.

use rockbot_core::testing::{MockToolHandle, ScriptedModel, mock_tool};
use rockbot_core::tool::{Effect, Tool};
use serde_json::json;

use crate::support::{host_of, results, settle};

fn mock(name: &str, effect: Effect) -> (Tool, MockToolHandle) {
    let (tool, handle) = mock_tool(name);
    (tool.effect(effect), handle)
}

#[tokio::test]
async fn pure_and_idempotent_calls_overlap_and_mutating_calls_exclude_all_others() {
    let names = ["look", "set", "send", "find", "pay", "post", "read", "put"];
    let model = ScriptedModel::new()
        .calls_all(names.map(|name| (name, json!({}))))
        .says("done");
    let mut host = host_of(&model);
    let mut handles = Vec::new();
    for (name, effect) in names.into_iter().zip([
        Effect::Pure,
        Effect::Idempotent,
        Effect::Mutating,
        Effect::Pure,
        Effect::Mutating,
        Effect::Mutating,
        Effect::Idempotent,
        Effect::Pure,
    ]) {
        let (tool, handle) = mock(name, effect);
        host = host.tool(tool);
        handles.push(handle);
    }
    let host = host.build().unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("s", "go").await });

    let groups: [&[usize]; 6] = [&[0, 1], &[2], &[3], &[4], &[5], &[6, 7]];
    for group in groups {
        settle().await;
        let running: Vec<_> = (0..names.len()).filter(|index| handles[*index].running() > 0).collect();
        assert_eq!(running, group, "these calls run, and no others");
        // The last one answers first: order of arrival is not the order of the results.
        for index in group.iter().rev() {
            let call = handles[*index].next_call().await;
            call.respond(format!("{} is done", names[*index]));
            settle().await;
        }
    }
    assert_eq!(asking.await.unwrap().unwrap().text, "done");
    let expected: Vec<_> = (1..)
        .zip(names)
        .map(|(id, name)| format!("call_{id}: {name} is done"))
        .collect();
    assert_eq!(results(&model.requests()[1]), expected);
}

#[tokio::test]
async fn an_effect_that_depends_on_the_arguments_decides_what_runs_together() {
    use rockbot_core::CallContext;
    use rockbot_core::tool::{ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration};

    /// Runs its mock, but only `{"dry":true}` changes nothing.
    #[derive(Debug)]
    struct Careful(std::sync::Arc<dyn ToolExecutor>);

    #[async_trait::async_trait]
    impl ToolExecutor for Careful {
        async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
            self.0.execute(request, cx).await
        }

        fn effect_of(&self, request: &ToolInvokeRequest) -> Option<Effect> {
            request.arguments.contains("dry").then_some(Effect::Pure)
        }
    }

    let (mock, mut handle) = mock_tool("mock");
    let executor = mock.executor;
    let registration = ToolRegistration::new("deploy", "Deploys.", json!({"type": "object"}));
    let model = ScriptedModel::new()
        .calls_all([
            ("deploy", json!({"dry": true})),
            ("deploy", json!({"dry": true})),
            ("deploy", json!({})),
        ])
        .says("done");
    let host = host_of(&model)
        .tool(Tool::new(registration, Careful(executor)))
        .build()
        .unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("s", "go").await });

    let first = handle.next_call().await;
    let second = handle.next_call().await;
    settle().await;
    assert_eq!(handle.running(), 2, "the mutating call waits for both");
    first.respond("1");
    second.respond("2");
    handle.next_call().await.respond("3");
    asking.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_tool_runs_no_more_calls_at_once_than_it_says() {
    let model = ScriptedModel::new()
        .calls_all([(); 3].map(|()| ("look", json!({}))))
        .says("done");
    let (tool, mut handle) = mock_tool("look");
    let host = host_of(&model).tool(tool.pure().max_concurrency(2)).build().unwrap();
    let agent = host.agent().clone();
    let asking = tokio::spawn(async move { agent.ask("s", "go").await });
    settle().await;
    assert_eq!((handle.started(), handle.running()), (2, 2));
    for _ in 0..3 {
        handle.next_call().await.respond("seen");
    }
    asking.await.unwrap().unwrap();
    assert_eq!(handle.started(), 3);
}
