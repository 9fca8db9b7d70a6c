//! An agent under test: a scripted model answers as the test says, a mock tool answers when the
//! test wants it.
//!
//! `cargo run --example test_an_agent --features testing`, or `cargo test --example test_an_agent
//! --features testing`.

use std::io::{Write, stdout};

use rockbot::prelude::*;
use rockbot::testing::{ScriptedModel, mock_tool};
use serde_json::json;

/// Builds the agent as the program does; a test gives it another model and another tool.
fn shop(model: impl ChatClient, stock: Tool) -> Result<AgentHost, BoxError> {
    let builder = AgentHost::in_memory().instructions("You are the clerk of a shop.");
    Ok(builder.chat(model).tool(stock).build()?)
}

async fn the_clerk_tells_what_is_left() -> Result<(), BoxError> {
    let model = ScriptedModel::new()
        .calls("stock", json!({"product": "chairs"}))
        .says("There are 3 chairs left.");
    let (stock, mut calls) = mock_tool("stock");
    let host = shop(model.clone(), stock)?;

    let turn = host.agent().ask("session", "Any chairs?").start().await?;
    let call = calls.next_call().await;
    assert_eq!(&*call.request.arguments, r#"{"product":"chairs"}"#);
    call.respond("3 left");

    assert_eq!(turn.outcome().await?.text, "There are 3 chairs left.");
    // The exact requests: what the model was told, and what it read of the result.
    let requests = model.requests();
    assert!(requests[0].messages[0].text().contains("the clerk of a shop"));
    assert_eq!(
        requests[1].messages.last().map(|message| message.text()).as_deref(),
        Some("3 left")
    );
    model.assert_complete();
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    the_clerk_tells_what_is_left().await?;
    writeln!(
        stdout(),
        "The clerk told what is left: 2 requests to the model, 1 call."
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_clerk_tells_what_is_left() {
        super::the_clerk_tells_what_is_left().await.unwrap();
    }
}
