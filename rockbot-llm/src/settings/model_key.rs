//! The keys of model settings: the model, and the field of it.

use rockbot_core::chat::ModelTier;

/// The section of the model that makes vectors of texts.
pub(super) const EMBEDDINGS: &str = "Embeddings";

/// The model that a setting configures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ModelKey {
    Tier(ModelTier),
    /// A fallback model, with its name.
    Fallback(String),
    /// The model that makes vectors of texts.
    Embeddings,
}

impl ModelKey {
    pub(super) const BALANCED: Self = Self::Tier(ModelTier::Balanced);

    /// Returns the path of its section in `LLM`, as variables spell it.
    pub(super) fn variables(&self) -> String {
        match self {
            Self::Tier(tier) => tier.name().to_owned(),
            Self::Fallback(name) => format!("Fallbacks__{name}"),
            Self::Embeddings => EMBEDDINGS.to_owned(),
        }
    }
}

/// A field of a model's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Endpoint,
    ApiKey,
    ModelId,
    Provider,
}

impl Field {
    /// The fields that every model has, in the order of their discriminants.
    pub(super) const CONNECTION: [Self; 3] = [Self::Endpoint, Self::ApiKey, Self::ModelId];

    /// The fields of a chat model.
    pub(super) const CHAT: [Self; 4] = [Self::Endpoint, Self::ApiKey, Self::ModelId, Self::Provider];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Endpoint => "Endpoint",
            Self::ApiKey => "ApiKey",
            Self::ModelId => "ModelId",
            Self::Provider => "Provider",
        }
    }

    pub(super) fn variable(self, key: &ModelKey) -> String {
        format!("ROCKBOT_LLM__{}__{}", key.variables(), self.name()).to_ascii_uppercase()
    }
}
