//! The directory of tools: immutable snapshots, swapped whole.

mod entry;
mod in_memory;
mod snapshot;
#[cfg(test)]
mod tests;
mod view;

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

pub use entry::{Owner, ToolEntry};
pub use in_memory::InMemoryToolRegistry;
pub use snapshot::ToolSnapshot;
pub use view::ToolView;

use super::{SchemaError, Tool};
use crate::ToolName;

/// Where tools are registered and found.
///
/// Readers take a [`ToolSnapshot`], which never changes; writers make a new one with a higher generation. A
/// name stands once in a registry: registering it again is an error, never a silent replacement.
pub trait ToolRegistry: fmt::Debug + Send + Sync + 'static {
    /// All tools, as they are now.
    fn snapshot(&self) -> Arc<ToolSnapshot>;

    /// Adds a tool that belongs to `owner`.
    ///
    /// # Errors
    ///
    /// Fails when the name is taken or not valid, the description is empty, or the schema cannot be used.
    fn register(&self, owner: &Owner, tool: Tool) -> Result<(), RegistryError>;

    /// Removes a tool of `owner`. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails when the tool belongs to somebody else.
    fn unregister(&self, owner: &Owner, name: &ToolName) -> Result<bool, RegistryError>;

    /// Makes `tools` the tools of `owner`: adds, replaces and removes in one step that nobody sees half done.
    ///
    /// # Errors
    ///
    /// Fails as [`ToolRegistry::register`] does; then nothing has changed.
    fn replace_source(&self, owner: &Owner, tools: Vec<Tool>) -> Result<(), RegistryError>;

    /// Sees every new generation.
    fn watch(&self) -> watch::Receiver<u64>;
}

/// Why a tool cannot be registered or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is taken.
    #[error("a tool named `{0}` is registered already: unregister it first or choose another name")]
    Duplicate(ToolName),
    /// The name has other characters, none, or too many.
    #[error("`{0}` cannot name a tool: use 1 to 64 characters of A-Z a-z 0-9 _ -")]
    InvalidName(ToolName),
    /// A model cannot choose a tool that says nothing about itself.
    #[error("tool `{0}` has no description: write a doc comment on its arguments or call `.description(…)`")]
    NoDescription(ToolName),
    /// The schema cannot be used to check arguments.
    #[error("the parameters schema of tool `{name}` cannot be used: {source}")]
    InvalidSchema {
        /// The tool.
        name: ToolName,
        /// What is wrong with it.
        source: SchemaError,
    },
    /// The tool belongs to another owner.
    #[error("tool `{name}` belongs to {owner:?}: only its owner can remove it")]
    NotOwner {
        /// The tool.
        name: ToolName,
        /// Whose it is.
        owner: Owner,
    },
}
