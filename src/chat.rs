//! Models: the client trait, the clients that implement it, and the layers in front of them.
//!
//! [`ChatClient`] asks a model; [`ChatTiers`] hands each call to the model of its [`ModelTier`];
//! [`ModelGateway`] stands in front with permits, retries, fallback models, a circuit breaker and
//! time limits. A [`TierSelector`](crate::turn::TierSelector) chooses the tier of a message,
//! [`ModelBehaviors`] adapts prompts and limits to particular models, and a [`PriceTable`] knows
//! the prices of tokens. Without a key, [`OfflineModel`] stands in and says that it is no LLM.
//!
//! [`ModelSettings`] such as the temperature reach the model from three places: the tier
//! (`LLM.High.Temperature`), the behavior of the model (`ModelBehaviors.Models`), and the
//! request, which wins.
//!
//! ```
//! use rockbot::chat::{ModelSettings, ReasoningEffort};
//! use rockbot::turn::TurnRequest;
//!
//! let settings = ModelSettings::new().with_temperature(0.0).with_reasoning_effort(ReasoningEffort::Low);
//! let request = TurnRequest::new("a session", "message 1", "Is this spam?").with_model_settings(settings);
//! assert!(request.model_settings.is_some());
//! ```
//!
//! ```
//! # #[cfg(feature = "llm")] {
//! use rockbot::chat::{ChatTiers, ModelTier, OfflineModel};
//!
//! let tiers = ChatTiers::new(OfflineModel::new());
//! # let _: (ChatTiers, ModelTier) = (tiers, ModelTier::High);
//! # }
//! ```
//!
#![doc = include_str!("../docs/models.md")]

#[doc(inline)]
pub use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatMessage, ChatRequest, ChatResponse, ContextReason,
    FinishReason, Ledger, MicroUsd, ModelInfo, ModelSettings, ModelTier, OutputMode, OutputSchema, ReasoningEffort,
    Role, Spent, ToolCall, ToolChoice, Usage,
};
#[doc(inline)]
pub use rockbot_core::embedding::EmbeddingClient;
#[doc(inline)]
pub use rockbot_host::behavior::{ModelBehavior, ModelBehaviors};
#[doc(inline)]
pub use rockbot_host::text_calling::{TextCallFallback, TextCallingClient};
#[cfg(feature = "llm")]
#[cfg_attr(docsrs, doc(cfg(feature = "llm")))]
#[doc(inline)]
pub use rockbot_llm::{
    AnthropicChat, ChatTiers, CircuitBreaker, Fallback, GatewayLayer, KeywordTierSelector, Meter, ModelGateway,
    OfflineModel, OpenAiChat, OpenAiEmbeddings, OpenAiResponses, PermitLimits, Permits, PriceTable, Retry, RetryPolicy,
    SharedPermits, TimeLimit, model_client, probe, probe_turn,
};
