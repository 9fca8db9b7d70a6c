//! Tower layers around turns, model calls and tool calls: as async functions, and a stock layer
//! of tower.
//!
//! `cargo run --example layers`: no key needed; the README says how to point it at a real model.

use std::io::{Write, stdout};

use rockbot::layer::{chat_fn, tool_fn, turn_fn};
use rockbot::prelude::*;
use tower::limit::ConcurrencyLimitLayer;

/// Adds two numbers.
#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn say(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let add = tool("add", |Add { a, b }: Add| async move { (a + b).to_string() }).pure();
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .tool(add)
        .turn_layer(turn_fn(|call, next| async move {
            say("turn begins");
            let outcome = next.call(call).await;
            say("turn ends");
            outcome
        }))
        // The first layer of a kind sees the request first.
        .chat_layer(ConcurrencyLimitLayer::new(4))
        .chat_layer(chat_fn(|call, next| async move {
            say(&format!("  model reads {} messages", call.request.messages.len()));
            next.call(call).await
        }))
        .tool_layer(tool_fn(|call, next| async move {
            say(&format!("  tool {} runs", call.request.tool_name));
            next.call(call).await
        }))
        .build()?;

    let answer = host.agent().ask("session", "Add 19 and 23.").await?;
    writeln!(stdout(), "{answer}")?;
    Ok(())
}
