//! Tool calls in plain text: of models without native calls, and of models that fall back to text
//! now and then.
//!
//! `rockbot-text-calls` parses the text; the client here translates between it and the native
//! calls of the [`ChatClient`](rockbot_core::chat::ChatClient) contract, so that the turn engine
//! need not know the difference.

mod client;
mod deltas;
mod fallback;
mod ids;
#[cfg(test)]
mod tests;

pub use client::TextCallingClient;
pub use fallback::TextCallFallback;
pub(crate) use ids::{id_from_text, is_from_text};
