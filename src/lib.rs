#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use rockbot_core as core;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub use rockbot_core::testing;
pub use rockbot_host as host;
#[cfg(feature = "llm")]
#[cfg_attr(docsrs, doc(cfg(feature = "llm")))]
pub use rockbot_llm as llm;
#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub use rockbot_memory as memory;

/// What most programs need, in one `use`: to ask an agent, to give it tools, and to handle messages over a bus.
///
/// What only some need stands in `rockbot::core` and `rockbot::host`: tools in other programs, parts of a
/// host, layers, stores.
pub mod prelude {
    /// Traits like [`MessageHandler`] and [`ChatClient`] are implemented under this attribute.
    pub use async_trait::async_trait;
    pub use rockbot_core::chat::{ChatClient, ChatRequest, ChatResponse, ModelTier};
    pub use rockbot_core::messaging::{
        Bus, HandlerError, Message, MessageContext, MessageEnvelope, MessageHandler, MessagePublisher,
        MessagePublisherExt,
    };
    pub use rockbot_core::tool::{Effect, Json, State, Tool, ToolError, stateful_tool, tool};
    pub use rockbot_core::turn::{Budget, BusyPolicy, TurnOutcome, TurnProgress, TurnRequest, TurnStatus};
    pub use rockbot_core::user::UserProxy;
    pub use rockbot_core::{BoxError, CallContext, SessionId};
    pub use rockbot_host::bus::InProcessBus;
    pub use rockbot_host::{Agent, AgentHost, TurnError};
    #[cfg(feature = "llm")]
    #[cfg_attr(docsrs, doc(cfg(feature = "llm")))]
    pub use rockbot_llm::{ChatTiers, ModelGateway, OfflineModel, OpenAiChat};
    pub use schemars::{self, JsonSchema};
    pub use serde::{self, Deserialize, Serialize};
}
