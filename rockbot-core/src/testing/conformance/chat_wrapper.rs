//! The conformance suite of a [`ChatClient`] that wraps another one.

use std::sync::Arc;

use async_trait::async_trait;

use crate::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};

/// Checks that what `wrap` makes of a client forwards [`ChatClient::describe`] for every tier.
///
/// # Panics
///
/// Panics if the wrapper drops or mixes up the model, the provider or the busy flag of the
/// wrapped client.
pub fn chat_wrapper<W: ChatClient>(wrap: impl Fn(Arc<dyn ChatClient>) -> W) {
    for is_busy in [false, true] {
        let inner = Described { is_busy };
        let wrapper = wrap(Arc::new(inner));
        for tier in ModelTier::ALL {
            assert_eq!(
                wrapper.describe(tier),
                inner.describe(tier),
                "a wrapper describes the wrapped client's model of each tier"
            );
        }
    }
}

/// A client with another model and provider for each tier.
#[derive(Debug, Clone, Copy)]
struct Described {
    is_busy: bool,
}

#[async_trait]
impl ChatClient for Described {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        Ok(ChatResponse::text(call.request.tier.unwrap_or_default().name()))
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        ModelInfo::new(format!("model of {}", tier.name()))
            .with_provider(format!("provider of {}", tier.name()))
            .with_busy(self.is_busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arc_forwards() {
        chat_wrapper(|client| client);
    }
}
