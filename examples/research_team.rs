//! A team: a lead gives three questions to researchers, which work side by side in the
//! background. One of them is called off, and the lead tells all results in one answer.
//!
//! `cargo run --example research_team`. The answers are rehearsed, so that it runs without a model.

use std::io::{Write, stdout};
use std::time::Duration;

use rockbot::chat::{ChatCall, ChatError, ModelInfo, ModelTier, Role};
use rockbot::prelude::*;
use rockbot::turn::Recipient;

/// A stand-in for the model of the researchers.
#[derive(Debug)]
struct Researcher;

/// A stand-in for the model of the lead.
#[derive(Debug)]
struct Lead;

#[async_trait]
impl ChatClient for Researcher {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let asked = call
            .request
            .messages
            .last()
            .map(|message| message.text())
            .unwrap_or_default();
        let (milliseconds, found) = match &*asked {
            "Which river is the longest?" => (100, "The Nile, 6650 km."),
            "Which lake is the deepest?" => (200, "Lake Baikal, 1642 m."),
            // This one takes too long.
            _ => (600_000, "Mount Everest, 8849 m."),
        };
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        Ok(ChatResponse::text(found))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[async_trait]
impl ChatClient for Lead {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let messages = call.request.messages.iter();
        let told = messages.filter(|message| message.role == Role::User);
        let mut results: Vec<_> = told.filter_map(|message| result(&message.text())).collect();
        results.sort();
        Ok(ChatResponse::text(results.join("\n")))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Returns what the message of a result tells, in one line.
fn result(message: &str) -> Option<String> {
    let told = message.strip_prefix("The background work \"")?;
    let (name, told) = told.split_once('"')?;
    let (how, words) = told.split_once(":\n")?;
    Some(if how.contains("cancelled") {
        format!("- {name}: was called off")
    } else {
        format!("- {name}: {}", words.lines().next()?)
    })
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let host = AgentHost::builder("lead")
        .chat(Lead)
        .data_dir("data/research_team")
        .agent("researcher", |agent| {
            agent
                .chat(Researcher)
                .instructions("You find out one thing, and answer in one sentence.")
        })
        .build()?;
    host.start().await?;
    let researcher = host.agent_called("researcher").ok_or("the host has this agent")?;
    let mut turns = Vec::new();
    for (name, question) in [
        ("river", "Which river is the longest?"),
        ("lake", "Which lake is the deepest?"),
        ("mountain", "Which mountain is the highest?"),
    ] {
        // The turn goes on by itself, also after a kill, and its end is a message of the lead's session.
        let request = researcher
            .request(name, question)
            .with_recipient(Recipient::new("main", name));
        turns.push(researcher.spawn(request).await?);
    }
    writeln!(stdout(), "{} researchers work.", turns.len())?;
    if let Some(mountain) = turns.last() {
        mountain.cancel().await?;
    }
    // One answer tells the results that come together.
    let said = host.agent().announcements().next().await.ok_or("the host runs")?;
    writeln!(stdout(), "{} results:\n{}", said.results.len(), said.content.words())?;
    host.shutdown(Duration::from_secs(5)).await;
    Ok(())
}
