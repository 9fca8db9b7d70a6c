//! Measures wisps: how many of three direct steps each run in a second of CPU time.
//!
//! Usage: `wisps [WISPS [memory | disk]]`, by default 1 000 in memory. A scripted model spawns
//! them in batches of 100, and every step calls a tool that answers at once. Prints one JSON
//! line.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use rockbot_benches::process_usage;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier, ToolCall};
use rockbot_core::tool::tool;
use rockbot_core::turn::Budget;
use rockbot_host::{AgentHost, AgentHostBuilder};
use rockbot_tools::wisps::Wisps;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Number of wisps of one call.
const BATCH: usize = 100;

/// Number of steps of a wisp.
const STEPS: usize = 3;

/// An argument that the tool returns.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// The text.
    text: String,
}

/// A model that spawns batches until all wisps have run.
#[derive(Debug)]
struct Spawner {
    left: AtomicUsize,
}

#[async_trait]
impl ChatClient for Spawner {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        let left = self.left.load(Ordering::Relaxed);
        let batch = left.min(BATCH);
        if batch == 0 {
            return Ok(ChatResponse::text("done"));
        }
        self.left.store(left - batch, Ordering::Relaxed);
        let definitions: Vec<_> = (0..batch).map(|at| definition(left - at)).collect();
        let arguments = json!({ "definitions": definitions });
        let id = format!("batch-{left}");
        Ok(ChatResponse::calls([ToolCall::new(
            id,
            "spawn_wisps",
            arguments.to_string(),
        )]))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Returns the definition of a wisp of its own: each step hands the result of the one before on.
fn definition(number: usize) -> serde_json::Value {
    let step = |at: usize| {
        let text = match at {
            0 => format!("text {number}"),
            at => format!("{{{{steps.s{}.result}}}}", at - 1),
        };
        json!({"id": format!("s{at}"), "mode": "Direct", "tool": "echo", "params": {"text": text}})
    };
    let steps: Vec<_> = (0..STEPS).map(step).collect();
    json!({"description": format!("Wisp {number}."), "steps": steps})
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let wisps = arguments.first().map_or(Ok(1_000), |text| text.parse())?;
    let data = tempfile::tempdir()?;
    let place = arguments.get(1).map_or("memory", String::as_str);
    let builder = match place {
        "memory" => AgentHost::in_memory(),
        "disk" => AgentHost::builder("bench").data_dir(data.path()),
        _ => return Err("usage: wisps [WISPS [memory | disk]]".into()),
    };
    let steps = Arc::new(AtomicUsize::new(0));
    let host = host(builder, wisps, &steps)?;
    host.start().await?;
    let (before, _) = process_usage();
    let begun = Instant::now();
    host.agent().ask("main", "Begin.").await?;
    let (after, _) = process_usage();
    let line = json!({
        "wisps": wisps,
        "journal": place,
        "steps": steps.load(Ordering::Relaxed),
        "cpu_seconds": after - before,
        "seconds": begun.elapsed().as_secs_f64(),
        "wisps_per_cpu_second": wisps as f64 / (after - before),
    });
    println!("{line}");
    Ok(())
}

fn host(builder: AgentHostBuilder, wisps: usize, steps: &Arc<AtomicUsize>) -> Result<AgentHost, BoxError> {
    let steps = steps.clone();
    let echo = tool("echo", move |Echo { text }: Echo| {
        steps.fetch_add(1, Ordering::Relaxed);
        async move { text }
    });
    let calls = u32::try_from(wisps * 100)?;
    let budget = Budget::default().with_max_model_calls(calls).with_max_tool_calls(calls);
    let model = Spawner {
        left: AtomicUsize::new(wisps),
    };
    let builder = builder
        .chat(model)
        .tool(echo.description("Returns its argument.").own_output());
    Ok(builder.add(Wisps::new()).budget(budget).build()?)
}
