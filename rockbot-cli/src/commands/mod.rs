//! The commands besides the conversation.

#[cfg(feature = "eval")]
pub(crate) mod eval;
pub(crate) mod init;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod serve;
pub(crate) mod tools;
