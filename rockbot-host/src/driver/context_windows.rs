//! How much models can read, as they told when they refused a request: the next turn need not find out again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rockbot_core::chat::ModelTier;

use super::TurnDriver;

/// The context windows of models, in tokens.
#[derive(Debug, Default)]
pub(crate) struct Windows(Mutex<HashMap<Arc<str>, u64>>);

impl TurnDriver {
    /// The window of the model of a tier, if it is known.
    pub(crate) fn window(&self, tier: Option<ModelTier>) -> Option<u64> {
        let windows = self.windows.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Most of the time there is nothing to look for.
        (!windows.is_empty()).then(|| windows.get(&self.model(tier)).copied())?
    }

    pub(super) fn learn_window(&self, tier: Option<ModelTier>, tokens: u64) {
        let model = self.model(tier);
        tracing::info!(model = %&*model, tokens, "the context window of a model is known now");
        let mut windows = self.windows.0.lock().unwrap_or_else(PoisonError::into_inner);
        windows.insert(model, tokens);
    }

    /// What the model of a tier is called; a client that does not say has one for each tier.
    fn model(&self, tier: Option<ModelTier>) -> Arc<str> {
        let tier = tier.unwrap_or_default();
        self.chat.model_of(tier).unwrap_or_else(|| tier.name().into())
    }
}
