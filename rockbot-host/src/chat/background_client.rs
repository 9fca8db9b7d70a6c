//! The way to a model for work that is no turn.

use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelTier};

use crate::engine::TurnEngine;

/// Asks models for parts of the host: through the layers, meters and ledger that turns go through. It does not keep
/// the host alive.
pub(crate) struct BackgroundClient(pub(crate) Weak<TurnEngine>);

#[async_trait]
impl ChatClient for BackgroundClient {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let ended = || ChatError::new(ChatErrorKind::Other, "the host that is to ask the model has ended");
        let engine = self.0.upgrade().ok_or_else(ended)?;
        let (cx, tier) = (call.cx.clone(), call.request.tier.unwrap_or_default());
        let mut response = engine.driver.chat.ask(call).await?;
        response.cost = engine.driver.ledger.cost_of(&response);
        engine.driver.ledger.enter(&cx, tier, &response);
        Ok(response)
    }

    /// Whether no turn works, too.
    fn is_idle(&self) -> bool {
        self.0.upgrade().is_none_or(|engine| engine.is_idle())
    }

    fn model_of(&self, tier: ModelTier) -> Option<Arc<str>> {
        self.0.upgrade()?.driver.chat.model_of(tier)
    }

    fn provider_of(&self, tier: ModelTier) -> Option<Arc<str>> {
        self.0.upgrade()?.driver.chat.provider_of(tier)
    }
}

impl fmt::Debug for BackgroundClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackgroundClient")
    }
}
