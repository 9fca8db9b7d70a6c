//! A tool that waits for a person: the turn parks, also over a restart, until the decision is
//! there.
//!
//! `cargo run --example approval`: no key needed; the README says how to point it at a real model.

use std::io::{Write, stdout};

use rockbot::prelude::*;

/// Deletes a file for good.
#[derive(Deserialize, JsonSchema)]
struct DeleteFile {
    /// The name of the file.
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let delete = tool("delete_file", |DeleteFile { name }: DeleteFile| async move {
        format!("{name} is deleted")
    });
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .tool(delete.needs_approval())
        .build()?;
    let agent = host.agent();
    let mut out = stdout();

    for (file, is_allowed) in [("draft.txt", true), ("thesis.txt", false)] {
        let mut stream = agent.ask("session", format!("Delete file \"{file}\"")).stream();
        while let Some(progress) = stream.next().await {
            match progress? {
                TurnProgress::ApprovalNeeded(question) => {
                    writeln!(
                        out,
                        "May {} run with {}? {is_allowed}",
                        question.tool, question.arguments
                    )?;
                    let decision = if is_allowed {
                        question.approve()
                    } else {
                        question.deny("the user keeps this file")
                    };
                    agent.decide(decision).await?;
                }
                TurnProgress::Final(outcome) => writeln!(out, "{}\n", outcome.text)?,
                _ => {}
            }
        }
    }
    Ok(())
}
