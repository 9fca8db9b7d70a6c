//! An answer as it is written, with the tool calls on the way.
//!
//! `cargo run --example stream`: no key needed; the README says how to point it at a real model.

use std::io::{Write, stdout};

use rockbot::prelude::*;

/// Calculates the product of two numbers.
#[derive(Deserialize, JsonSchema)]
struct Multiply {
    a: i64,
    b: i64,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let multiply = tool(
        "multiply",
        |Multiply { a, b }: Multiply| async move { (a * b).to_string() },
    );
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .tool(multiply.pure())
        .build()?;

    let mut out = stdout();
    let mut stream = host.agent().ask("session", "Multiply 6 and 7.").stream();
    while let Some(progress) = stream.next().await {
        match progress? {
            TurnProgress::Delta(text) => write!(out, "{text}")?,
            // The model begins its answer again.
            TurnProgress::Retract => writeln!(out, " [taken back]")?,
            TurnProgress::ToolStarted { tool, arguments, .. } => writeln!(out, "-> {tool} {arguments}")?,
            TurnProgress::ToolFinished { content, .. } => writeln!(out, "<- {content}")?,
            // The turn waits for a decision, made here or elsewhere.
            TurnProgress::ApprovalNeeded(ask) => host.agent().decide(ask.deny("this program asks nobody")).await?,
            TurnProgress::Final(outcome) if !outcome.is_answer() => return Err(outcome.text.into()),
            TurnProgress::Final(outcome) => writeln!(out, "\n({} model calls)", outcome.model_calls)?,
            _ => {}
        }
        out.flush()?;
    }
    Ok(())
}
