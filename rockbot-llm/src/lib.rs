//! Model clients of the rockbot agent framework: chat over HTTP, tiers, a gateway with limits, an
//! offline model.
//!
//! Everything that answers is a [`ChatClient`](rockbot_core::chat::ChatClient), so the parts
//! nest: wire clients at the bottom, [`ChatTiers`] over them, and a [`ModelGateway`] in front,
//! which a host asks.
//!
//! | part | for |
//! |---|---|
//! | [`OpenAiChat`] | chat with servers that speak OpenAI's dialect: OpenAI, OpenRouter, vLLM, llama.cpp, Ollama |
//! | [`OpenAiResponses`] | chat with servers that speak OpenAI's Responses API |
//! | [`AnthropicChat`] | chat with Anthropic's Messages API |
//! | [`OpenAiEmbeddings`] | embeddings of texts, from servers that speak OpenAI's dialect |
//! | [`ChatTiers`] | one client that routes each call to the model of its tier |
//! | [`KeywordTierSelector`] | chooses the tier of a message, without asking a model |
//! | [`ModelGateway`] | permits, priorities, retries, fallback models, time limits and metrics around all models |
//! | [`GatewayLayer`] | a layer of your own for the gateway, or for any stack of tower layers |
//! | [`Meter`], [`PriceTable`] | counts calls, tokens and cost; prices of models |
//! | [`LlmSettings`], [`Provider`], [`GatewaySettings`] | what a configuration says, as plain data; see [`settings`] for the names |
//! | [`probe`] | asks a server whether the settings of a tier are right |
//! | [`OfflineModel`] | stands in without network or key, and says so in each answer |
//!
//! Clients are built of settings by `from_settings`, `from_config` and `from_env`.
//!
//! ```no_run
//! use rockbot_core::CallContext;
//! use rockbot_core::chat::{ChatCall, ChatClient, ChatMessage, ChatRequest};
//! use rockbot_llm::ChatTiers;
//!
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ChatTiers::from_env_or_offline()?;
//! let request = ChatRequest::new([ChatMessage::user("Why is the sky blue?")]);
//! let answer = model
//!     .chat(ChatCall::new(request, CallContext::new("session")))
//!     .await?;
//! println!("{}", answer.text);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod anthropic;
#[cfg(test)]
mod conformance;
mod error;
#[cfg(test)]
mod fixture;
mod gateway;
mod http;
mod limits;
mod model_client;
mod offline;
mod openai;
mod pricing;
mod responses;
mod retry;
pub mod settings;
#[cfg(test)]
mod testing;
mod tier_selector;
mod tiers;
mod turn_probe;

pub use anthropic::{AnthropicChat, AnthropicChatBuilder};
pub use error::LlmConfigError;
pub use gateway::{
    ChatService, CircuitBreaker, Fallback, GatewayLayer, GatewayLayerService, Meter, ModelGateway, ModelGatewayBuilder,
    Permits, Retry, SharedPermits,
};
pub use http::{ServerCheck, SettingNames};
pub use limits::{PermitLimits, TimeLimit};
pub use model_client::{model_client, probe};
pub use offline::OfflineModel;
pub use openai::{OpenAiChat, OpenAiChatBuilder, OpenAiEmbeddings, OpenAiEmbeddingsBuilder};
pub use pricing::{Price, PriceTable, PriceTableError};
pub use responses::{OpenAiResponses, OpenAiResponsesBuilder};
pub use retry::RetryPolicy;
pub use settings::{GatewaySettings, LlmSettings, Provider, TierSettings};
pub use tier_selector::{KeywordTierSelector, TierRules, TierRulesError};
pub use tiers::ChatTiers;
pub use turn_probe::{TurnCheck, probe_turn};
