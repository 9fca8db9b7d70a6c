//! The tool that a model calls to activate groups of tools that are shown on demand.
//!
//! It is in no registry: each snapshot of the registry that has such groups gets a tool of its
//! own, whose description lists them. It only answers; the turn itself keeps which groups are
//! active.

use std::sync::Arc;

use rockbot_core::ToolName;
use rockbot_core::tool::{
    InMemoryToolRegistry, Owner, Tool, ToolEntry, ToolError, ToolRegistry, ToolSnapshot, ToolState, stateful_tool,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The name of the tool.
const NAME: &str = "activate_tools";

/// The groups of tools that a call has activated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Activated {
    /// `true` for a call of the tool `activate_tools`.
    pub(crate) is_own: bool,
    /// The groups, which are active now.
    pub(crate) groups: Vec<ToolName>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ActivateTools {
    group: String,
}

/// Returns the tool for the groups of `snapshot`; `None` if it has no groups.
pub(super) fn activation_tool(snapshot: &Arc<ToolSnapshot>) -> Option<Arc<ToolEntry>> {
    let groups = snapshot.groups();
    if groups.is_empty() {
        return None;
    }
    let lines = groups
        .iter()
        .map(|group| format!("\n{}: {}", group.name, group.summary));
    let description = format!("Gives you more tools. Groups:{}", lines.collect::<String>());
    let mut tool: Tool = stateful_tool(NAME, snapshot.clone(), activate)
        .pure()
        .own_output()
        .description(description);
    let names: Vec<_> = groups.iter().map(|group| group.name.as_str()).collect();
    tool.registration.parameters_schema["properties"]["group"]["enum"] = names.into();
    let registry = InMemoryToolRegistry::new();
    let registered = registry.register(&Owner::new("host"), tool);
    registered.expect("the name and the schema of this tool are fixed");
    registry.snapshot().find(NAME).cloned()
}

/// Returns the group that a call of the tool names.
pub(super) fn group_of(arguments: &str) -> Option<ToolName> {
    let arguments: ActivateTools = serde_json::from_str(arguments).ok()?;
    Some(arguments.group.trim().into())
}

async fn activate(tools: ToolState<Arc<ToolSnapshot>>, arguments: ActivateTools) -> Result<String, ToolError> {
    let groups = tools.groups();
    let name = arguments.group.trim();
    let Some(group) = groups.iter().find(|group| group.name == name) else {
        let names: Vec<_> = groups.iter().map(|group| group.name.as_str()).collect();
        return Err(ToolError::invalid_arguments(format!(
            "there is no group `{name}`. The groups are: {}",
            names.join(", ")
        )));
    };
    let of_group = tools
        .entries()
        .iter()
        .filter(|tool| tool.exposure().group() == Some(&group.name));
    let names: Vec<_> = of_group.map(|tool| tool.registration().name.as_str()).collect();
    let answer = format!("You have these tools now: {}.", names.join(", "));
    match group.guide.trim() {
        "" => Ok(answer),
        guide => Ok(format!("{answer}\n\n{guide}")),
    }
}
