//! Asking a model: the request, the answer, and the client between them.
//!
//! A model call is a plain request and response. It resolves when the answer is complete; pieces
//! of the answer go to the [`DeltaSink`] of the call while it runs. So stock tower layers
//! (time-out, concurrency limit, retry) hold for the whole answer, not just until its first byte.

mod client;
mod cost;
mod error;
mod ledger;
mod message;
mod model_info;
mod model_settings;
mod output_mode;
mod reason;
mod reasoning_effort;
mod request;
mod request_cache;
mod response;
mod spent;
mod tool_choice;
mod usage;
mod watched_deltas;

pub use crate::content::{Content, ContentPart, Provenance};
pub use client::{ChatCall, ChatClient, ChatDelta, DeltaSink};
pub use cost::{InvalidAmount, MicroUsd, Pricing};
pub use error::{ChatError, ChatErrorKind, Overflow};
pub use ledger::Ledger;
pub use message::{ChatMessage, Reasoning, Role, ToolCall};
pub use model_info::ModelInfo;
pub use model_settings::{ModelSettings, ModelSettingsError};
pub use output_mode::OutputMode;
pub use reason::ContextReason;
pub use reasoning_effort::ReasoningEffort;
pub use request::{ChatRequest, ModelTier, OutputSchema};
pub use request_cache::RequestCache;
pub use response::{ChatResponse, FinishReason};
pub use spent::Spent;
pub use tool_choice::ToolChoice;
pub use usage::Usage;
pub use watched_deltas::WatchedDeltas;
