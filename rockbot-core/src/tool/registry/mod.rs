//! The registry of tools: immutable snapshots that are swapped as a whole.
//!
//! Readers never wait: they load the present [`ToolSnapshot`] and keep it for as long as they
//! like. A writer makes a new snapshot with the next generation and swaps it in.

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

/// A registry of tools by name.
///
/// Readers take a [`ToolSnapshot`], which never changes; writers make a new one with a higher
/// generation. A name is unique: registering a taken one is an error, never a silent replacement.
/// Each tool belongs to an [`Owner`], so that the tools of one source, such as an MCP server, can
/// be replaced together and by nothing else. `testing::conformance::tool_registry` is the suite
/// that every implementation passes.
///
/// ```
/// use rockbot_core::tool::{InMemoryToolRegistry, Owner, RegistryError, ToolRegistry, tool};
///
/// /// Adds two numbers.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// let registry = InMemoryToolRegistry::new();
/// let owner = Owner::new("calculator");
/// registry.register(&owner, tool("add", |Add { a, b }: Add| async move { a + b }).pure())?;
///
/// let snapshot = registry.snapshot();
/// assert!(snapshot.find("add").is_some());
/// registry.unregister(&owner, &"add".into())?;
/// assert!(snapshot.find("add").is_some(), "a snapshot never changes");
/// assert!(registry.snapshot().find("add").is_none());
/// # Ok::<(), RegistryError>(())
/// ```
pub trait ToolRegistry: fmt::Debug + Send + Sync + 'static {
    /// Returns all tools as they are now.
    fn snapshot(&self) -> Arc<ToolSnapshot>;

    /// Adds a tool that belongs to `owner`, behind all others.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is taken or invalid, the description is empty, or the schema
    /// cannot be compiled.
    fn register(&self, owner: &Owner, tool: Tool) -> Result<(), RegistryError>;

    /// Removes a tool of `owner`. Returns `true` if there was one.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool belongs to another owner.
    fn unregister(&self, owner: &Owner, name: &ToolName) -> Result<bool, RegistryError>;

    /// Replaces all tools of `owner` by `tools`: adds, replaces and removes in one step, which no
    /// reader sees half done. A tool keeps the place of its namesake; the others follow in their
    /// order behind all tools.
    ///
    /// # Errors
    ///
    /// Returns an error as [`ToolRegistry::register`] does; the registry is then unchanged.
    fn replace_source(&self, owner: &Owner, tools: Vec<Tool>) -> Result<(), RegistryError>;

    /// Moves the tools of `owners` together, in the order of the owners, to where the first of them
    /// stands. The tools of one owner keep their order. It is no new generation if they stand so
    /// already.
    ///
    /// Sources that connect in any order call it, so that models are shown the same text after each
    /// start.
    fn arrange(&self, owners: &[Owner]);

    /// Returns a receiver that is notified of every new generation.
    fn watch(&self) -> watch::Receiver<u64>;
}

impl<Shared: ToolRegistry + ?Sized> ToolRegistry for Arc<Shared> {
    fn snapshot(&self) -> Arc<ToolSnapshot> {
        (**self).snapshot()
    }

    fn register(&self, owner: &Owner, tool: Tool) -> Result<(), RegistryError> {
        (**self).register(owner, tool)
    }

    fn unregister(&self, owner: &Owner, name: &ToolName) -> Result<bool, RegistryError> {
        (**self).unregister(owner, name)
    }

    fn replace_source(&self, owner: &Owner, tools: Vec<Tool>) -> Result<(), RegistryError> {
        (**self).replace_source(owner, tools)
    }

    fn arrange(&self, owners: &[Owner]) {
        (**self).arrange(owners);
    }

    fn watch(&self) -> watch::Receiver<u64> {
        (**self).watch()
    }
}

/// An error of registering or removing a tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name is taken.
    #[error("a tool named `{0}` is registered already: unregister it first or choose another name")]
    Duplicate(ToolName),
    /// The name is empty, too long, or has other characters.
    #[error("`{0}` cannot name a tool: use 1 to 64 characters of A-Z a-z 0-9 _ -")]
    InvalidName(ToolName),
    /// The description is empty. A model cannot choose a tool without one.
    #[error("tool `{0}` has no description: write a doc comment on its arguments or call `.description(…)`")]
    NoDescription(ToolName),
    /// The tool may run in no call at all.
    #[error(
        "`max_concurrency` of tool `{0}` is zero, so no call of it could run: use 1 or more, or `None` for no limit"
    )]
    NoConcurrency(ToolName),
    /// The schema cannot be compiled for validating arguments.
    #[error("the parameters schema of tool `{name}` cannot be used: {cause}")]
    InvalidSchema {
        /// The name of the tool.
        name: ToolName,
        /// The error in the schema.
        cause: SchemaError,
    },
    /// The tool belongs to another owner.
    #[error("tool `{name}` belongs to {owner:?}: only its owner can remove it")]
    NotOwner {
        /// The name of the tool.
        name: ToolName,
        /// The owner of the tool.
        owner: Owner,
    },
}
