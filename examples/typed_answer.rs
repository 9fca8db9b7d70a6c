//! Answers as values of your own types: the schema goes to the model, the parts arrive while the
//! model writes them.
//!
//! `cargo run --example typed_answer`: without a key a stand-in always answers the same; the
//! README says how to point it at a real model.

use std::io::{Write, stdout};

use rockbot::chat::{ChatCall, ChatError, ModelInfo};
use rockbot::prelude::*;

/// A dish and its ingredients.
#[derive(Debug, Deserialize, JsonSchema)]
struct Dish {
    name: String,
    /// The ingredients, the main one first.
    ingredients: Vec<String>,
    minutes: u32,
}

/// The stand-in for a model.
#[derive(Debug)]
struct Cook;

#[async_trait]
impl ChatClient for Cook {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        Ok(ChatResponse::text(
            r#"{"name": "Shakshuka", "ingredients": ["tomatoes", "eggs"], "minutes": 25}"#,
        ))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn host() -> Result<AgentHost, BoxError> {
    let builder = AgentHost::in_memory().instructions("You know what is in the fridge: tomatoes and eggs.");
    Ok(match ChatTiers::from_env() {
        Ok(models) => builder.chat(models).build()?,
        Err(_) => builder.chat(Cook).build()?,
    })
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let host = host()?;
    // An answer that does not match the schema goes back to the model with the reason.
    let dish = host.agent().ask("kitchen", "What can I cook?").output::<Dish>().await?;
    let ingredients = dish.ingredients.join(", ");
    writeln!(stdout(), "{}: {ingredients} ({} minutes)", dish.name, dish.minutes)?;
    Ok(())
}
