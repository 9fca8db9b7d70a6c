//! Tools and registries that the tests of this module share.

use rockbot_core::tool::{InMemoryToolRegistry, Owner, Tool, ToolFilter, ToolRegistry, tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::gateway::KnownTools;

/// Takes a number.
#[derive(Debug, Deserialize, JsonSchema)]
struct Number {
    /// The number.
    #[serde(default)]
    at: Option<u32>,
}

/// Creates a tool with an optional argument `at`, a number.
pub(super) fn plain_tool(name: &str) -> Tool {
    tool(name, |Number { at }: Number| async move {
        at.unwrap_or_default().to_string()
    })
}

/// Creates a registry with these tools.
pub(super) fn registry(names: &[&str]) -> InMemoryToolRegistry {
    let registry = InMemoryToolRegistry::new();
    for name in names {
        registry.register(&Owner::new("test"), plain_tool(name)).unwrap();
    }
    registry
}

/// Returns the tools of these names, all allowed.
pub(super) fn known_tools(names: &[&str]) -> KnownTools {
    KnownTools {
        tools: registry(names).snapshot(),
        filter: ToolFilter::all(),
    }
}
