//! Model clients of the rockbot agent framework.
//!
//! * [`OpenAiChat`] asks servers that speak OpenAI's chat completions: OpenAI, OpenRouter, vLLM, llama.cpp, Ollama
//! * [`ChatTiers`] hands each call to the model that its tier deserves
//! * [`LlmSettings`] reads which models those are, from a configuration; [`probe`] asks their servers whether it is right
//! * [`ModelGateway`] stands in front of them: permits, priorities, retries, fallback models, time limits
//! * [`Meter`] counts calls, tokens and money; [`PriceTable`] says what models cost
//! * [`KeywordTierSelector`] says which tier a message deserves
//! * [`OfflineModel`] stands in where there is no model at all, and says so
//! * [`OpenAiEmbeddings`] asks for the vectors of texts, where something is to be found by its meaning
//!
//! All of them but the last are [`ChatClient`](rockbot_core::chat::ChatClient)s. Which variables name the models is said at
//! [`settings`].
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
//!     .chat(ChatCall { request: request.into(), deltas: None, cx: CallContext::new("session") })
//!     .await?;
//! println!("{}", answer.text);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod error;
#[cfg(test)]
mod fixture;
mod gateway;
mod http;
mod limits;
mod offline;
mod openai;
mod pricing;
mod retry;
pub mod settings;
#[cfg(test)]
mod testing;
mod tier_selector;
mod tiers;

pub use error::LlmConfigError;
pub use gateway::{
    ChatService, CircuitBreaker, Fallback, GatewayLayer, GatewayLayerService, Meter, ModelGateway, ModelGatewayBuilder,
    Permits, Retry,
};
pub use http::{ServerCheck, SettingNames};
pub use limits::{PermitLimits, TimeLimit};
pub use offline::OfflineModel;
pub use openai::{OpenAiChat, OpenAiChatBuilder, OpenAiEmbeddings, OpenAiEmbeddingsBuilder, probe};
pub use pricing::{Price, PriceTable, PriceTableError};
pub use retry::RetryPolicy;
pub use settings::{GatewaySettings, LlmSettings, TierSettings};
pub use tier_selector::{KeywordTierSelector, TierRules, TierRulesError};
pub use tiers::ChatTiers;
