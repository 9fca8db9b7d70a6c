//! Models without native tool calls, driven through calls in plain text.
//!
//! `rockbot-text-calls` parses the text; the client here translates between it and the native calls of the
//! [`ChatClient`](rockbot_core::chat::ChatClient) contract, so that the turn engine need not know the difference.

mod client;
mod deltas;
#[cfg(test)]
mod tests;

pub use client::TextCallingClient;
