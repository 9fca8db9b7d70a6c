//! Models in three tiers, a choice between them for each message, and another model where one
//! fails.
//!
//! `cargo run --example tiers_and_fallback`: the models are stand-ins that tell their names; use
//! `OpenAiChat` and `AnthropicChat` in their place.

use std::io::{Write, stdout};

use rockbot::chat::{ChatCall, ChatError, ChatErrorKind, Fallback, KeywordTierSelector, ModelGateway, ModelInfo};
use rockbot::prelude::*;

/// A model that tells its name.
#[derive(Debug)]
struct Named(&'static str);

#[async_trait]
impl ChatClient for Named {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        Ok(ChatResponse::text(format!("{} answers.", self.0)))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::new(self.0)
    }
}

/// A model whose server is down.
#[derive(Debug)]
struct Down;

#[async_trait]
impl ChatClient for Down {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        Err(ChatError::new(ChatErrorKind::Unreachable, "the server is down"))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::new("the great model")
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let high = ModelGateway::builder(Down).fallback(Fallback::to("rented", Named("The rented model")));
    // Without a fallback of its own, a tier whose model fails asks the balanced model.
    let tiers = ChatTiers::new(Named("The balanced model"))
        .low(Named("The small model"))
        .high(high.build());
    let host = AgentHost::in_memory()
        .chat(tiers)
        .tier_selector(KeywordTierSelector::default())
        .build()?;
    let agent = host.agent();

    for text in ["Hi!", "Compare the architecture of these two designs step by step."] {
        writeln!(stdout(), "> {text}\n{}", agent.ask("session", text).await?)?;
    }
    let text = "And you, great model?";
    let answer = agent.ask("session", text).tier(ModelTier::High).await?;
    writeln!(stdout(), "> {text}\n{answer}")?;
    Ok(())
}
