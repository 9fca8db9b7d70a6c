//! The tools with which a model keeps the list of its turn's tasks.
//!
//! They are in no registry: they exist within a turn that keeps a list, and nobody else can call them. They only check
//! and answer; the turn itself takes the list from the calls that succeeded.

use std::sync::Arc;

use rockbot_core::CallContext;
use rockbot_core::tool::{InMemoryToolRegistry, Owner, Tool, ToolRegistry, ToolSnapshot, tool};

use crate::turn::tasks::{CREATE, TaskCreate, TaskList, TaskUpdate, UPDATE};

/// The tools of a turn that keeps a list.
pub(super) fn task_tools() -> Arc<ToolSnapshot> {
    let create = |args: TaskCreate, cx: CallContext| async move { before(&cx).create(&args) };
    let update = |args: TaskUpdate, cx: CallContext| async move { before(&cx).update(&args) };
    let tools: Vec<Tool> = vec![tool(CREATE, create).pure(), tool(UPDATE, update).pure()];
    let registry = InMemoryToolRegistry::new();
    let registered = registry.replace_source(&Owner::new("turn"), tools);
    registered.expect("the names, descriptions and schemas of these tools are fixed");
    registry.snapshot()
}

/// The list as it is when the call runs.
fn before(cx: &CallContext) -> TaskList {
    cx.extension::<TaskList>().cloned().unwrap_or_default()
}
