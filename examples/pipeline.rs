//! A pipeline: a procedure of the program, whose steps call tools and ask a model. Killed in the
//! middle and started again, it goes on with the first step that has not ended; what is ordered
//! is not ordered again.
//!
//! `cargo run --example pipeline --features wisps`. The answers are rehearsed, so that it runs
//! without a model.

use std::io::{Write, stdout};
use std::time::Duration;

use futures_util::future::try_join_all;
use rockbot::chat::{ChatCall, ChatError, ModelInfo, ModelTier};
use rockbot::prelude::*;
use rockbot::tools::pipelines::{Pipeline, Steps};
use serde_json::json;

/// An order, as the model decides on it.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    /// The item.
    item: String,
    /// The number of pieces.
    amount: u32,
}

/// An item of the shelf.
#[derive(Deserialize, JsonSchema)]
struct Item {
    /// The item.
    item: String,
}

/// Orders what is nearly used up. Between the steps it is an ordinary function, which does the
/// same each time.
async fn restock(steps: Steps, items: Vec<String>) -> Result<String, BoxError> {
    // Steps that are awaited together run side by side.
    let counts = items.iter().map(|item| steps.call("count", json!({"item": item})));
    let counts: Vec<u32> = try_join_all(counts).await?;
    let mut receipts = Vec::new();
    for (item, left) in items.iter().zip(counts) {
        if left < 10 {
            let order: Order = steps
                .ask(format!("{left} of {item} are left. How many do we order?"))
                .await?;
            let receipt: String = steps.call("order", order).await?;
            receipts.push(receipt);
        }
    }
    Ok(format!("Done: {}.", receipts.join(", ")))
}

async fn count(Item { item }: Item) -> Result<u32, BoxError> {
    writeln!(stdout(), "counts {item}")?;
    Ok(if item == "sugar" { 80 } else { 3 })
}

async fn order(Order { item, amount }: Order) -> Result<String, BoxError> {
    writeln!(stdout(), "orders {amount} of {item}")?;
    Ok(format!("{amount} of {item} are on their way"))
}

/// A stand-in for a model, with an answer to each question of this example.
#[derive(Debug)]
struct Rehearsed;

#[async_trait]
impl ChatClient for Rehearsed {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let messages = call.request.messages.iter().rev();
        let asked = messages
            .map(|message| message.text())
            .find(|text| text.contains(" are left."));
        let asked = asked.unwrap_or_default();
        let item = if asked.contains("coffee") { "coffee" } else { "tea" };
        // A closed standard output is no reason to fail.
        let _ = writeln!(stdout(), "thinks about {item}");
        if item == "coffee" {
            // Time to kill the process in.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(ChatResponse::text(json!({"item": item, "amount": 20}).to_string()))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let host = AgentHost::builder("shop")
        .chat(Rehearsed)
        .data_dir("data/pipeline")
        .tool(tool("count", count).pure())
        .tool(tool("order", order).trusted_effect("the pipeline decides what is ordered, not a model"))
        .add(Pipeline::new("restock", restock))
        .build()?;
    // What an earlier process left goes on.
    host.start().await?;
    let restock = host.agent_called("restock").ok_or("the host has this pipeline")?;
    // Under the same id it is the same run: a second start waits for its end, or gets its answer.
    let run = restock
        .ask("shelf", json!(["tea", "coffee", "sugar"]).to_string())
        .message_id("monday");
    writeln!(stdout(), "{}", run.await?.text)?;
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
