//! Layers: tower middleware around turns, model calls, tool calls and messages.
//!
//! The builder takes any `tower::Layer` on each of the four services: [`layer`](crate::agent::AgentHostBuilder::layer)
//! for messages, `turn_layer`, `chat_layer` and `tool_layer`. The first layer added sees the request first, as in
//! `tower::ServiceBuilder`. The requests are [`MessageContext`](crate::message::MessageContext)s with their delivery,
//! [`TurnCall`], [`ChatCall`] and [`ToolInvocation`]. The layers of the gateway
//! ([`Retry`](crate::chat::Retry), [`Fallback`](crate::chat::Fallback) …) are tower layers as well.
//!
//! ```
//! use rockbot::agent::AgentHostBuilder;
//! use tower::limit::ConcurrencyLimitLayer;
//!
//! fn limited(builder: AgentHostBuilder) -> AgentHostBuilder {
//!     builder.chat_layer(ConcurrencyLimitLayer::new(4))
//! }
//! ```

pub use rockbot_core::chat::ChatCall;
pub use rockbot_core::messaging::Delivery;
pub use rockbot_core::tool::ToolInvocation;
pub use rockbot_host::{Stack, TurnCall};
