//! Two people who use one agent: conversations, memories and approvals of each are their own.
//!
//! `cargo run --example two_principals`: no key needed; the README says how to point it at a real
//! model.

use std::io::{Write, stdout};

use rockbot::memory::Memory;
use rockbot::prelude::*;

/// Sends money.
#[derive(Deserialize, JsonSchema)]
struct SendMoney {
    /// The amount in euros.
    amount: u32,
}

async fn ask(agent: &Agent, who: &str, text: &str) -> Result<(), BoxError> {
    // Both use a session of the same name, and neither sees what the other said.
    let answer = agent.for_principal(who).ask("main", text).await?;
    writeln!(stdout(), "{who}> {text}\n{answer}\n")?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let send = tool("send_money", |SendMoney { amount }: SendMoney| async move {
        format!("{amount} euros are sent.")
    });
    let host = AgentHost::in_memory()
        .chat(ChatTiers::from_env_or_offline()?)
        .add(Memory::default())
        .tool(send.needs_approval())
        .build()?;
    host.start().await?;
    let agent = host.agent();

    ask(agent, "ann", "Save memory \"The safe is behind the picture.\"").await?;
    ask(agent, "bob", "Search memory \"safe\"").await?;
    ask(agent, "ann", "Search memory \"safe\"").await?;

    let [ann, bob] = ["ann", "bob"].map(|name| agent.for_principal(name));
    let turn = ann.run(ann.request("money", "Send money: 20")).await?.turn;
    for question in ann.approvals() {
        writeln!(stdout(), "ann is asked: {} {}", question.tool, question.arguments)?;
        let refused = bob.decide(question.approve()).await.is_err();
        writeln!(
            stdout(),
            "bob is asked {} questions; his decision is refused: {refused}",
            bob.approvals().len()
        )?;
        ann.decide(question.approve()).await?;
    }
    writeln!(stdout(), "ann> {}", ann.outcome(&turn).await?.text)?;
    Ok(())
}
