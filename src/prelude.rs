//! The types and traits that most programs use, for one glob import.
//!
//! It covers asking an agent, giving it tools, and handling messages over a bus. Everything else
//! is found by concern: [`agent`](crate::agent), [`tool`](crate::tool), [`chat`](crate::chat),
//! [`turn`](crate::turn), [`message`](crate::message), [`store`](crate::store),
//! [`config`](crate::config), [`layer`](crate::layer).
//!
//! ```
//! use rockbot::prelude::*;
//!
//! /// Adds two numbers.
//! #[derive(Deserialize, JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! let add = tool("add", |Add { a, b }: Add| async move { (a + b).to_string() }).pure();
//! assert_eq!(add.registration.name.as_str(), "add");
//! ```

#[cfg(all(feature = "llm", feature = "memory"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "llm", feature = "memory"))))]
pub use crate::configured::FromConfig;
/// The attribute for implementations of traits like [`MessageHandler`] and [`ChatClient`].
pub use async_trait::async_trait;
pub use rockbot_core::chat::{ChatClient, ChatRequest, ChatResponse, ModelTier};
pub use rockbot_core::content::{Content, MediaPart};
pub use rockbot_core::messaging::{
    Bus, HandlerError, Message, MessageContext, MessageEnvelope, MessageHandler, MessagePublisher, MessagePublisherExt,
};
pub use rockbot_core::tool::{Effect, JsonOutput, Tool, ToolError, ToolState, stateful_tool, tool};
pub use rockbot_core::turn::{Budget, BusyPolicy, TurnOutcome, TurnProgress, TurnRequest, TurnStatus};
pub use rockbot_core::user::UserProxy;
pub use rockbot_core::{BoxError, CallContext, SessionId};
pub use rockbot_host::bus::InProcessBus;
pub use rockbot_host::{Agent, AgentHost, TurnError};
#[cfg(feature = "llm")]
#[cfg_attr(docsrs, doc(cfg(feature = "llm")))]
pub use rockbot_llm::{AnthropicChat, ChatTiers, ModelGateway, OfflineModel, OpenAiChat, OpenAiResponses};
pub use schemars::{self, JsonSchema};
pub use serde::{self, Deserialize, Serialize};
