//! Tool dispatch: a bare dynamic async call against the whole guard (lookup, grant, limits, panics, metrics).
//!
//! Usage: `w2 TOOLS ITERATIONS`. Prints one JSON line for each way.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::tool::{
    InMemoryToolRegistry, Owner, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistry, tool,
};
use rockbot_host::tool::{ToolDispatcher, ToolLimits};
use serde::Deserialize;

const ARGUMENTS: &str = r#"{"a":7,"b":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#;
const LOOPS: usize = 7;

/// A small deterministic thing.
#[derive(Deserialize, schemars::JsonSchema)]
struct Args {
    a: i64,
    b: String,
}

fn body(args: &Args) -> String {
    format!("result {} len {}", args.a, args.b.len())
}

/// The floor: nothing but the work, behind a dynamic async call that takes the same context.
#[derive(Debug)]
struct Bare;

#[async_trait]
impl ToolExecutor for Bare {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let args: Args = serde_json::from_str(&request.arguments)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        Ok(request.succeed(body(&args)))
    }

    fn checks_arguments(&self) -> bool {
        true
    }
}

async fn measure<F: Future<Output = usize>>(name: &str, iterations: usize, mut call: impl FnMut() -> F) {
    let mut nanos = Vec::new();
    for _ in 0..LOOPS {
        let started = Instant::now();
        let mut bytes = 0;
        for _ in 0..iterations {
            bytes += call().await;
        }
        assert!(bytes > 0, "every call returns something");
        nanos.push(started.elapsed().as_secs_f64() * 1e9 / iterations as f64);
    }
    nanos.sort_by(f64::total_cmp);
    println!(
        "{}",
        serde_json::json!({ "impl": name, "ns_per_call": nanos[LOOPS / 2], "min": nanos[0] })
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let argument = |index, default| {
        std::env::args()
            .nth(index)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (tools, iterations) = (argument(1, 64), argument(2, 300_000));

    let (registry, owner) = (InMemoryToolRegistry::new(), Owner::new("w2"));
    let all = (0..tools).map(|index| {
        tool(&format!("tool_{index}"), |args: Args| async move { body(&args) })
            .pure()
            .into()
    });
    registry
        .replace_source(&owner, all.collect())
        .expect("the names differ");
    let dispatcher = ToolDispatcher::new(Arc::new(registry), ToolLimits::default());

    let request = ToolInvokeRequest {
        tool_call_id: "call_1".into(),
        tool_name: format!("tool_{}", tools / 2).into(),
        arguments: ARGUMENTS.into(),
        session_id: "s1".into(),
    };
    let cx = CallContext::new("s1");
    let bare: Arc<dyn ToolExecutor> = Arc::new(Bare);

    measure("rockbot: bare dyn call with context", iterations, || {
        let (executor, request, cx) = (bare.clone(), request.clone(), cx.clone());
        async move {
            executor
                .execute(request, &cx)
                .await
                .map_or(0, |response| response.content.len())
        }
    })
    .await;
    measure("rockbot: registry + guard + typed tool", iterations, || {
        let (dispatcher, request, cx) = (&dispatcher, request.clone(), cx.clone());
        async move { dispatcher.call(request, &cx).await.content.len() }
    })
    .await;
}
