//! Tool dispatch: a bare dynamic async call, and the same call through the registry and the whole
//! guard.

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
/// Number of loops, of which the median counts.
pub const LOOPS: usize = 7;

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

/// A call of one of several registered tools, with the parts of its floor.
#[derive(Debug)]
pub struct Bench {
    bare: Arc<dyn ToolExecutor>,
    dispatcher: ToolDispatcher,
    request: ToolInvokeRequest,
    iterations: usize,
}

impl Bench {
    /// Creates the bench of `iterations` calls in each of seven loops, with `tools` tools registered.
    pub fn new(tools: usize, iterations: usize) -> Self {
        let registry = InMemoryToolRegistry::new();
        let owner = Owner::new("bench");
        let tool = |index| {
            tool(&format!("tool_{index}"), |args: Args| async move { work(&args) })
                .pure()
                .description("Works.")
        };
        registry
            .replace_source(&owner, (0..tools).map(tool).collect())
            .expect("the names differ");
        Self {
            bare: Arc::new(Bare),
            dispatcher: ToolDispatcher::new(Arc::new(registry), ToolLimits::default()),
            request: ToolInvokeRequest::new("call_1", format!("tool_{}", tools / 2), ARGUMENTS).with_session_id("s1"),
            iterations,
        }
    }

    /// Measures a call of the floor, in nanoseconds.
    pub async fn floor(&self) -> f64 {
        let cx = CallContext::new("s1");
        let call = || {
            let executor = self.bare.clone();
            let request = self.request.clone();
            let cx = cx.clone();
            async move {
                let response = executor.execute(request, &cx).await;
                response.map_or(0, |response| response.content.text_len())
            }
        };
        measure(self.iterations, call).await
    }

    /// Measures a call through registry and guard, in nanoseconds.
    pub async fn ours(&self) -> f64 {
        let cx = CallContext::new("s1");
        let call = || {
            let dispatcher = &self.dispatcher;
            let request = self.request.clone();
            let cx = cx.clone();
            async move { dispatcher.call(request, &cx).await.content.text_len() }
        };
        measure(self.iterations, call).await
    }
}

async fn measure<F: Future<Output = usize>>(iterations: usize, mut call: impl FnMut() -> F) -> f64 {
    let mut figures = Vec::new();
    for _ in 0..LOOPS {
        let started = Instant::now();
        let mut bytes = 0;
        for _ in 0..iterations {
            bytes += call().await;
        }
        assert!(bytes > 0, "every call returns something");
        figures.push(started.elapsed().as_secs_f64() * 1e9 / iterations as f64);
    }
    median(figures)
}
