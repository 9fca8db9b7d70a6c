//! The commands besides the conversation.

pub(crate) mod init;
pub(crate) mod tools;
