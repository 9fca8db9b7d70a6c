//! Tool dispatch: a bare dynamic async call, and the same call through the registry and the whole guard.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::tool::{
    InMemoryToolRegistry, Owner, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistry, tool,
};
use rockbot_host::tool::{ToolDispatcher, ToolLimits};

use crate::{Args, median, work};

const ARGUMENTS: &str = r#"{"a":7,"b":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#;
const LOOPS: usize = 7;

/// The floor: the work alone, behind a dynamic async call that takes the same context.
#[derive(Debug)]
struct Bare;

#[async_trait]
impl ToolExecutor for Bare {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let args: Args = serde_json::from_str(&request.arguments)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        Ok(request.succeed(work(&args)))
    }
}

/// Measures a call, in nanoseconds: of the floor, and through the guard with `tools` tools registered.
pub async fn nanoseconds(tools: usize, iterations: usize) -> (f64, f64) {
    let (registry, owner) = (InMemoryToolRegistry::new(), Owner::new("bench"));
    let tool = |index| {
        tool(&format!("tool_{index}"), |args: Args| async move { work(&args) })
            .pure()
            .description("Works.")
    };
    registry
        .replace_source(&owner, (0..tools).map(tool).collect())
        .expect("the names differ");
    let dispatcher = ToolDispatcher::new(Arc::new(registry), ToolLimits::default());
    let bare: Arc<dyn ToolExecutor> = Arc::new(Bare);
    let request = ToolInvokeRequest::new("call_1", format!("tool_{}", tools / 2), ARGUMENTS).with_session_id("s1");
    let cx = CallContext::new("s1");
    let floor = measure(iterations, || {
        let (executor, request, cx) = (bare.clone(), request.clone(), cx.clone());
        async move {
            executor
                .execute(request, &cx)
                .await
                .map_or(0, |response| response.content.text_len())
        }
    });
    let floor = floor.await;
    let ours = measure(iterations, || {
        let (dispatcher, request, cx) = (&dispatcher, request.clone(), cx.clone());
        async move { dispatcher.call(request, &cx).await.content.text_len() }
    });
    (floor, ours.await)
}

async fn measure<F: Future<Output = usize>>(iterations: usize, mut call: impl FnMut() -> F) -> f64 {
    let mut figures = Vec::new();
    for _ in 0..LOOPS {
        let (started, mut bytes) = (Instant::now(), 0);
        for _ in 0..iterations {
            bytes += call().await;
        }
        assert!(bytes > 0, "every call returns something");
        figures.push(started.elapsed().as_secs_f64() * 1e9 / iterations as f64);
    }
    median(figures)
}
