//! An agent that remembers: a fact from one conversation, found in another one and after a restart.
//!
//! `cargo run --example memory`: no key needed; the facts are files below
//! `data/memory_example/memory`.

use std::io::{Write, stdout};
use std::time::Duration;

use rockbot::memory::Memory;
use rockbot::prelude::*;

const DATA: &str = "data/memory_example";

fn host() -> Result<AgentHost, BoxError> {
    let builder = AgentHost::builder("rememberer").data_dir(DATA);
    Ok(builder
        .chat(ChatTiers::from_env_or_offline()?)
        .add(Memory::default())
        .build()?)
}

async fn ask(host: &AgentHost, session: &str, text: &str) -> Result<(), BoxError> {
    let answer = host.agent().ask(session, text).await?;
    writeln!(stdout(), "[{session}] > {text}\n{answer}\n")?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let first = host()?;
    first.start().await?;
    ask(&first, "monday", "Save memory \"My cat is called Miso.\"").await?;
    first.shutdown(Duration::from_secs(5)).await;
    drop(first);

    let second = host()?;
    second.start().await?;
    ask(&second, "tuesday", "Search memory \"cat\"").await?;
    second.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
