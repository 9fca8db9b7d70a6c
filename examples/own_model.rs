//! A model client of your own: one trait with two methods. Whatever answers is a model.
//!
//! `cargo run --example own_model`: the model counts words, and calls a tool when it is asked for
//! the time.

use std::io::{Write, stdout};

use rockbot::chat::{ChatCall, ChatError, ModelInfo, Role, ToolCall, Usage};
use rockbot::prelude::*;

#[derive(Debug)]
struct WordCounter;

#[async_trait]
impl ChatClient for WordCounter {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let Some(last) = call.request.messages.last() else {
            return Ok(ChatResponse::text("Nothing was said."));
        };
        let text = last.text();
        let answer = match last.role {
            Role::Tool => ChatResponse::text(format!("It is {text}.")),
            _ if text.contains("time") => ChatResponse::calls([ToolCall::new("call_1", "clock", "{}")]),
            _ => ChatResponse::text(format!("That were {} words.", text.split_whitespace().count())),
        };
        // The host counts tokens and costs as the client reports them.
        Ok(answer.with_usage(Usage::new(text.len() as u64 / 4, 5)))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Tells the time.
#[derive(Deserialize, JsonSchema)]
struct Clock {}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let clock = tool("clock", |Clock {}: Clock| async { "noon" }).pure();
    let host = AgentHost::in_memory().chat(WordCounter).tool(clock).build()?;
    for text in ["How many words are these?", "What time is it?"] {
        let answer = host.agent().ask("session", text).await?;
        writeln!(stdout(), "> {text}\n{answer}")?;
    }
    Ok(())
}
