//! The tools of a model for keeping the task list of its turn.
//!
//! They are in no registry: only a call whose context carries the list finds them, so no other
//! caller can reach them. They check their arguments and answer; the turn's machine derives the
//! list from the calls that succeeded. So the list lives with the turn and its journal.

use std::sync::Arc;

use rockbot_core::CallContext;
use rockbot_core::tool::{InMemoryToolRegistry, Owner, Tool, ToolRegistry, ToolSnapshot, tool};

use crate::turn::tasks::{CREATE, TaskCreate, TaskList, TaskUpdate, UPDATE};

/// Returns the tools of a turn that keeps a list.
pub(super) fn task_tools() -> Arc<ToolSnapshot> {
    let create = |args: TaskCreate, cx: CallContext| async move { list_before(&cx).create(&args) };
    let update = |args: TaskUpdate, cx: CallContext| async move { list_before(&cx).update(&args) };
    let tools: Vec<Tool> = vec![
        tool(CREATE, create).pure().own_output(),
        tool(UPDATE, update).pure().own_output(),
    ];
    let registry = InMemoryToolRegistry::new();
    let registered = registry.replace_source(&Owner::new("turn"), tools);
    registered.expect("the names, descriptions and schemas of these tools are fixed");
    registry.snapshot()
}

/// Returns the list as it is before the call.
fn list_before(cx: &CallContext) -> TaskList {
    cx.extension::<TaskList>().cloned().unwrap_or_default()
}
