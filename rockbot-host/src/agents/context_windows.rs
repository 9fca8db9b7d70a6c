//! Context windows of models, learned from the requests that they rejected as too long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::chat::ModelTier;

use crate::chat::GuardedChat;
use crate::turn::policy::is_window;

/// The context windows of models in tokens, as far as they are known.
///
/// A provider that rejects a request for its length often states its limit. Later turns of the
/// host compact their conversations to that limit instead of running into it again. Nothing is
/// kept across restarts.
#[derive(Debug)]
pub(crate) struct ContextWindows {
    chat: Arc<GuardedChat>,
    /// Bounded by the number of models that the host is configured with.
    by_model: Mutex<HashMap<Arc<str>, u64>>,
}

impl ContextWindows {
    /// Creates an empty table of the models behind `chat`.
    pub(crate) fn of(chat: Arc<GuardedChat>) -> Self {
        let by_model = Mutex::default();
        Self { chat, by_model }
    }

    /// Returns the window of the model of a tier, if it is known.
    pub(crate) fn of_tier(&self, tier: Option<ModelTier>) -> Option<u64> {
        let windows = self.by_model.lock().unwrap_or_else(PoisonError::into_inner);
        // Most hosts never learn a window: then the model's name need not be looked up for each message.
        (!windows.is_empty()).then(|| windows.get(&self.model(tier)).copied())?
    }

    /// Records the window of the model of a tier, unless no model can have it.
    pub(crate) fn learn(&self, tier: Option<ModelTier>, tokens: u64) {
        if !is_window(tokens) {
            return;
        }
        let model = self.model(tier);
        tracing::info!(model = %&*model, tokens, "context window learned; later turns are compacted to it");
        let mut windows = self.by_model.lock().unwrap_or_else(PoisonError::into_inner);
        windows.insert(model, tokens);
    }

    /// Forgets the window of the model of a tier if it has read a longer request: what was learned is
    /// wrong.
    pub(crate) fn check(&self, tier: ModelTier, input: u64) {
        let mut windows = self.by_model.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.is_empty() {
            return;
        }
        let model = self.model(Some(tier));
        if windows.get(&model).is_some_and(|window| *window < input) {
            windows.remove(&model);
        }
    }

    /// Returns the name of the model of a tier, or the tier's name when the client does not state its
    /// model.
    fn model(&self, tier: Option<ModelTier>) -> Arc<str> {
        let tier = tier.unwrap_or_default();
        self.chat.model_of(tier).unwrap_or_else(|| tier.name().into())
    }
}
