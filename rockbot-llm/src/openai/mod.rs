//! The dialect of OpenAI-compatible servers, which nearly all servers speak: chat completions and
//! embeddings.
//!
//! The transport is [`http`](crate::http)'s; this module has the contents of requests and
//! answers. [`chat`] sends the body that [`request`] writes, and folds the answer with
//! [`response`], a whole answer as a stream of one piece. [`wire`] reads each event, [`think`]
//! finds reasoning inside the text, [`details`] keeps the provider's own form of it, [`usage`]
//! reads tokens and cost, and [`dialect`] ties all of it to the transport.

mod chat;
mod details;
mod dialect;
mod embeddings;
mod messages;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod think;
mod usage;
mod wire;

pub use self::chat::{OpenAiChat, OpenAiChatBuilder};
#[cfg(test)]
pub(crate) use self::dialect::OPENAI;
pub use self::embeddings::{OpenAiEmbeddings, OpenAiEmbeddingsBuilder};
pub(crate) use self::usage::read_usage;
