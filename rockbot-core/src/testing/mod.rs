//! Test doubles for agents, and conformance suites for implementers.
//!
//! Behind the feature `testing`; enable it for development only. For authors of agents and tools:
//! [`ScriptedModel`] replays answers of a model, [`mock_tool`] holds calls of a tool until the
//! test answers them, [`ManualClock`], [`SequentialIds`] and [`HashedEmbeddings`] make time, ids
//! and vectors deterministic. For authors of stores, journals, buses and clients: [`conformance`]
//! has a suite for each trait. For authors of parsers: [`Mutations`] breaks valid documents in
//! many ways. For tests against parts of others: [`outside_part`]; for tests that need a process of their own:
//! [`assert_passes_alone`], and `peak_growth` on Linux.
//!
//! ```
//! use std::sync::Arc;
//!
//! use rockbot_core::CallContext;
//! use rockbot_core::chat::{ChatCall, ChatClient, ChatRequest};
//! use rockbot_core::testing::ScriptedModel;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), rockbot_core::BoxError> {
//! let model = ScriptedModel::new().calls("get_weather", json!({"city": "Oslo"})).says("It rains in Oslo.");
//!
//! let call = ChatCall::new(ChatRequest::default(), CallContext::new("session"));
//! assert_eq!(model.chat(call.clone()).await?.tool_calls[0].id, "call_1");
//! assert_eq!(model.chat(call).await?.text, "It rains in Oslo.");
//! model.assert_complete();
//! # Ok(())
//! # }
//! ```

pub mod conformance;
mod hashed_embeddings;
mod manual_clock;
mod mock_tool;
mod mutations;
mod outside_part;
mod own_process;
mod scripted_model;
mod sequential_ids;

#[cfg(feature = "files")]
pub use crate::files::FailingSyncs;
pub use hashed_embeddings::HashedEmbeddings;
pub use manual_clock::ManualClock;
pub use mock_tool::{MockCall, MockToolHandle, mock_tool};
pub use mutations::Mutations;
pub use outside_part::outside_part;
pub use own_process::assert_passes_alone;
#[cfg(target_os = "linux")]
pub use own_process::peak_growth;
pub use scripted_model::ScriptedModel;
pub use sequential_ids::SequentialIds;
