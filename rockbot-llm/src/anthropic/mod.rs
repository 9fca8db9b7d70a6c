//! The dialect of Anthropic's Messages API.
//!
//! The transport is [`http`](crate::http)'s; this module has the contents of requests and
//! answers. [`conversation`] arranges the messages of a request as the API wants them, [`shape`]
//! makes a tool of a requested output shape, and [`request`] writes the body, with the
//! definitions that [`tools`] writes. [`chat`] sends it, and folds the answer with [`response`],
//! which reads each event with [`wire`]. [`thinking`] keeps thinking blocks with their
//! signatures, [`usage`] counts tokens, and [`dialect`] ties all of it to the transport.

mod chat;
mod conversation;
mod dialect;
mod media;
#[cfg(test)]
mod neighbor_tests;
mod request;
mod response;
#[cfg(test)]
mod rules;
mod shape;
#[cfg(test)]
mod tests;
mod thinking;
mod tools;
mod usage;
mod wire;

pub use self::chat::{AnthropicChat, AnthropicChatBuilder};
#[cfg(test)]
pub(crate) use self::rules::refusal;
