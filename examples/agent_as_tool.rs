//! Two agents in one host: the lead has the specialist as a tool, and pays for its work.
//!
//! `cargo run --example agent_as_tool`: the answers are rehearsed, so that it runs without a model.

use std::io::{Write, stdout};

use rockbot::chat::{ChatCall, ChatError, MicroUsd, ModelInfo, Role, ToolCall, Usage};
use rockbot::prelude::*;
use rockbot::tool::ToolFilter;

/// A stand-in for a model that answers with the first of its lines that was not said yet.
#[derive(Debug)]
struct Rehearsed(&'static str, Option<&'static str>);

#[async_trait]
impl ChatClient for Rehearsed {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let result = call.request.messages.iter().rfind(|message| message.role == Role::Tool);
        let answer = match (self.1, result) {
            (Some(task), None) => {
                let arguments = serde_json::json!({ "task": task }).to_string();
                ChatResponse::calls([ToolCall::new("call_1", "ask_poet", arguments)])
            }
            (_, Some(result)) => ChatResponse::text(format!("{} {}", self.0, result.text())),
            (None, None) => ChatResponse::text(self.0),
        };
        Ok(answer.with_usage(Usage::new(100, 20)).with_cost(MicroUsd(50)))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let host = AgentHost::in_memory()
        .chat(Rehearsed("The poet says:", Some("Write a line about rivers.")))
        .agent("poet", |agent| {
            agent
                .instructions("You are a poet. Answer in one line.")
                .chat(Rehearsed("Rivers keep the time of stone.", None))
                .tools(ToolFilter::all().without(["ask_poet"]))
        })
        .build()?;
    let poet = host.agent_called("poet").ok_or("the host has a poet")?;
    host.add_tool(poet.as_tool("ask_poet", "Writes poems."))?;

    let outcome = host.agent().ask("session", "I need a line about rivers.").await?;
    let spent = outcome.spent();
    writeln!(
        stdout(),
        "{}\n{} model calls, {}",
        outcome.text,
        outcome.model_calls,
        spent.cost
    )?;
    Ok(())
}
