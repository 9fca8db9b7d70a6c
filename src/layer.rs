//! Layers: tower middleware around turns, model calls, tool calls and messages.
//!
//! The builder takes any `tower::Layer` on each of the four services:
//! [`layer`](crate::agent::AgentHostBuilder::layer) for messages, `turn_layer`, `chat_layer` and
//! `tool_layer`. The first layer added sees the request first, as in `tower::ServiceBuilder`. The
//! requests are [`MessageContext`](crate::message::MessageContext)s with their delivery,
//! [`TurnCall`], [`ChatCall`] and [`ToolInvocation`]. The layers of the gateway
//! ([`Retry`](crate::chat::Retry), [`Fallback`](crate::chat::Fallback) …) are tower layers as
//! well.
//!
//! Stock tower layers fit that are `Clone`, such as `TimeoutLayer` and `ConcurrencyLimitLayer`.
//! Tower's rate limit is not; [`RateLimitLayer`] fits all four services. In front of turns it
//! counts only turns that begin with a message.
//!
//! An async function is a layer, too: [`message_fn`], [`turn_fn`], [`chat_fn`] and [`tool_fn`]
//! give it the request and [`Next`], the rest of the stack. It may change the request and the
//! response, answer by itself, or call a clone of `Next` again. Errors pass as they are, in a
//! `BoxError`.
//!
//! ```
//! use rockbot::agent::AgentHostBuilder;
//! use rockbot::layer::chat_fn;
//! use tower::limit::ConcurrencyLimitLayer;
//!
//! fn limited(builder: AgentHostBuilder) -> AgentHostBuilder {
//!     builder.chat_layer(ConcurrencyLimitLayer::new(4))
//! }
//!
//! fn timed(builder: AgentHostBuilder) -> AgentHostBuilder {
//!     builder.chat_layer(chat_fn(|call, next| async move {
//!         let began = std::time::Instant::now();
//!         let answer = next.call(call).await;
//!         println!("the model took {:?}", began.elapsed());
//!         answer
//!     }))
//! }
//! ```

pub use rockbot_core::chat::ChatCall;
pub use rockbot_core::layer::{RateLimit, RateLimitExceeded, RateLimitLayer, tower};
pub use rockbot_core::messaging::Delivery;
pub use rockbot_core::tool::ToolInvocation;
pub use rockbot_core::turn::TurnCall;
pub use rockbot_host::{FnLayer, FnService, Next, Stack, chat_fn, message_fn, tool_fn, turn_fn};
