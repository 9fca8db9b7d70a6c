//! The dialect of OpenAI's Responses API, which some models speak only.
//!
//! The transport is [`http`](crate::http)'s; this module has the contents of requests and
//! answers. [`chat`] is the client. [`request`] writes the body, with the items that [`input`]
//! makes of the conversation. [`response`] folds the answer, which it reads with [`wire`].
//! [`kept`] keeps encrypted reasoning and the ids of its items, so that they can be sent back
//! unchanged, and [`dialect`] ties all of it to the transport.
//!
//! The Responses API stores nothing: each request carries the whole conversation, as in the other
//! dialects, so that a turn can resume and change its model. Reasoning comes back encrypted and
//! is sent again with the ids of the items behind it.

mod chat;
mod dialect;
mod input;
mod kept;
mod media;
#[cfg(test)]
mod neighbor_tests;
mod request;
mod response;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod tests;
mod wire;

pub use self::chat::{OpenAiResponses, OpenAiResponsesBuilder};
#[cfg(test)]
pub(crate) use self::rules::refusal;
