//! The chat client of background work, which is no turn.

use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, Ledger, ModelInfo, ModelTier};

use super::GuardedChat;

/// The part of a host that its background work asks models through.
///
/// The turn engine implements it. The trait keeps this module independent of the engine, which
/// asks models through it.
pub(crate) trait BackgroundHost: Send + Sync + 'static {
    /// Returns the entry point to models, behind the user's chat layers.
    fn chat(&self) -> &GuardedChat;

    /// Returns the ledger that records the costs of answers.
    fn ledger(&self) -> &Ledger;

    /// Returns `true` while no turn works and no model is asked.
    fn is_idle(&self) -> bool;
}

/// A chat client for parts of the host, through the same layers, meters and ledger that turns use.
///
/// It holds the host weakly: a part that keeps its client does not keep the host alive. Once the
/// host has ended, calls fail.
pub(crate) struct BackgroundClient(Weak<dyn BackgroundHost>);

impl BackgroundClient {
    /// Creates a client of `host`.
    pub(crate) fn of<H: BackgroundHost>(host: &Arc<H>) -> Self {
        // Coerced to the trait object after the downgrade.
        let host: Weak<H> = Arc::downgrade(host);
        Self(host)
    }
}

#[async_trait]
impl ChatClient for BackgroundClient {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let ended = || ChatError::new(ChatErrorKind::Other, "the host has ended, and its model access with it");
        let host = self.0.upgrade().ok_or_else(ended)?;
        let cx = call.cx.clone();
        let tier = call.request.tier.unwrap_or_default();
        let mut response = host.chat().ask(call).await?;
        response.cost = host.ledger().cost_of(&response);
        host.ledger().enter(&cx, response.tier.unwrap_or(tier), &response);
        Ok(response)
    }

    /// Returns the answer of the host's client, and reports busy while a turn runs, too.
    fn describe(&self, tier: ModelTier) -> ModelInfo {
        match self.0.upgrade() {
            Some(host) => host.chat().describe(tier).with_busy(!host.is_idle()),
            None => ModelInfo::unknown(),
        }
    }
}

impl fmt::Debug for BackgroundClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackgroundClient")
    }
}

#[cfg(test)]
mod tests {
    use rockbot_core::testing::conformance;

    use super::*;
    use crate::AgentHost;

    #[test]
    fn it_describes_the_models_of_the_host() {
        conformance::chat_wrapper(|client| {
            // Leaked, because the client does not keep the host alive.
            let host = Box::leak(Box::new(AgentHost::in_memory().chat(client).build().unwrap()));
            BackgroundClient::of(host.turns().engine())
        });
    }
}
