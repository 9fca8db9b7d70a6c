//! Wisps: a model runs two fixed lists of steps in one call. The arguments of one are wrong and
//! are repaired before anything runs; a step of the other fails. The model reads what failed
//! first.
//!
//! `cargo run --example wisps --features wisps`. The answers are rehearsed, so that it runs
//! without a model.

use std::io::{Write, stdout};
use std::time::Duration;

use rockbot::chat::{ChatCall, ChatError, ModelInfo, ModelTier, Role, ToolCall};
use rockbot::prelude::*;
use rockbot::tools::wisps::Wisps;
use serde_json::{Value, json};

/// A company that sends bills.
#[derive(Deserialize, JsonSchema)]
struct Payee {
    /// The name of the company.
    payee: String,
}

/// A payment.
#[derive(Deserialize, JsonSchema)]
struct Payment {
    /// The name of the company.
    payee: String,
    /// The amount in euros.
    euros: u32,
}

async fn find_bill(Payee { payee }: Payee) -> String {
    json!({"payee": payee, "number": 7}).to_string()
}

async fn pay(Payment { payee, euros }: Payment) -> Result<String, ToolError> {
    match &*payee {
        "baker" => Ok(format!("paid {euros} euros to the {payee}")),
        _ => Err(ToolError::execution_failed("the bank is unavailable")),
    }
}

/// Returns a definition: find the bill, name its number, pay.
fn definition(payee: &str, euros: &Value) -> Value {
    json!({"description": format!("Pay the {payee}."), "steps": [
        {"id": "find", "mode": "Direct", "tool": "find_bill", "params": {"payee": payee}},
        {"id": "name", "mode": "Llm", "prompt": "Which number has the bill?", "input_from": "find"},
        {"id": "pay", "mode": "Direct", "tool": "pay", "params": {"payee": payee, "euros": euros}},
    ]})
}

/// A stand-in for a model, which the caller and the steps ask.
#[derive(Debug)]
struct Rehearsed;

#[async_trait]
impl ChatClient for Rehearsed {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let request = &call.request;
        let last = request
            .messages
            .last()
            .map(|message| message.text())
            .unwrap_or_default();
        let is_step = request.tier == Some(ModelTier::Low);
        Ok(match (is_step, request.messages.last().map(|message| message.role)) {
            (true, _) if last.contains("Which number") => ChatResponse::text("Bill 7."),
            // The repair: the schema of the tool asks for a number.
            (true, _) => ChatResponse::text(json!({"payee": "baker", "euros": 20}).to_string()),
            (false, Some(Role::Tool)) => ChatResponse::text(report(&last)),
            (false, _) => {
                let wisps = [definition("baker", &json!("twenty")), definition("printer", &json!(90))];
                let arguments = json!({ "definitions": wisps });
                ChatResponse::calls([ToolCall::new("1", "spawn_wisps", arguments.to_string())])
            }
        })
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Returns the result of the call without the ids of the wisps and the keys of their outputs.
fn report(result: &str) -> String {
    let lines = result.lines().take_while(|line| !line.starts_with("Outputs of steps"));
    let lines = lines
        .filter(|line| !line.is_empty())
        .map(|line| match line.split_once(" [") {
            Some((id, rest)) if id.starts_with("## ") => format!("[{rest}"),
            _ => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let host = AgentHost::builder("clerk")
        .chat(Rehearsed)
        .data_dir("data/wisps")
        .tool(
            tool("find_bill", find_bill)
                .description("Finds a bill.")
                .pure()
                .own_output(),
        )
        .tool(tool("pay", pay).description("Pays a bill."))
        .add(Wisps::new())
        .build()?;
    host.start().await?;
    let answer = host.agent().ask("main", "Pay the baker and the printer.").await?;
    writeln!(stdout(), "{}", answer.text)?;
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
