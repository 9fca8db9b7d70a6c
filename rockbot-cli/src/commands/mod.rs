//! The commands besides the conversation.

pub(crate) mod data;
#[cfg(feature = "eval")]
pub(crate) mod eval;
pub(crate) mod init;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod serve;
pub(crate) mod tools;
