//! The agent's own files as other families of tools read them, to hand them on: [`AgentFiles`].

use std::fmt;

use async_trait::async_trait;
use rockbot_core::tool::ToolError;

/// A reader of the agent's own files. The file tools provide it to the parts of their host.
#[async_trait]
pub(crate) trait AgentFiles: fmt::Debug + Send + Sync {
    /// Returns the bytes of the file at a path, of at most 4 MiB.
    ///
    /// # Errors
    ///
    /// Returns the reason why there are none, in words for a model.
    async fn read(&self, path: &str) -> Result<Vec<u8>, ToolError>;
}
