//! The tools that list and cancel the tasks of other agents.

use std::fmt::Write as _;

use rockbot_core::CallContext;
use rockbot_core::support::nearest_names;
use rockbot_core::tool::{ToolError, ToolState};
use schemars::JsonSchema;
use serde::Deserialize;

use super::CallerState;
use super::host::Caller;
use super::tasks::PendingTask;

/// Lists the tasks that other agents work on for this user.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListAgentTasks {}

pub(super) async fn list(
    state: ToolState<CallerState>,
    _: ListAgentTasks,
    cx: CallContext,
) -> Result<String, ToolError> {
    let tasks = state.caller()?.tasks_of(&cx).await;
    if tasks.is_empty() {
        return Ok("No agent works on a task for this user.".to_owned());
    }
    let mut table = "| task | agent | skill |\n|---|---|---|\n".to_owned();
    for task in &tasks {
        let _ = writeln!(
            table,
            "| {} | {} | {} |",
            task.id,
            task.agent,
            task.skill.replace('|', "\\|")
        );
    }
    Ok(table)
}

/// Cancels a task that another agent works on: the agent is told to stop, and nothing more comes
/// of the task.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CancelAgentTask {
    /// The id of the task.
    task_id: String,
}

pub(super) async fn cancel(
    state: ToolState<CallerState>,
    args: CancelAgentTask,
    cx: CallContext,
) -> Result<String, ToolError> {
    let caller = state.caller()?;
    let tasks = caller.tasks_of(&cx).await;
    let id = args.task_id.trim();
    let Some(task) = tasks.iter().find(|task| task.id == id) else {
        let near = nearest_names(id, tasks.iter().map(|task| task.id.as_str()), 3);
        let hint = match &*near {
            [] => "it may have ended; list_agent_tasks shows those that go on".to_owned(),
            near => format!("did you mean `{}`?", near.join("`, `")),
        };
        return Err(ToolError::invalid_arguments(format!(
            "no agent works on a task `{id}`: {hint}"
        )));
    };
    caller.drop_task(task).await;
    Ok(format!(
        "The task `{id}` is cancelled: the agent `{}` is told to stop, and what it may say later is dropped.",
        task.agent
    ))
}

impl Caller {
    /// Returns the tasks of the caller's principal that go on.
    async fn tasks_of(&self, cx: &CallContext) -> Vec<PendingTask> {
        let tasks = self.tasks.lock().await;
        tasks
            .open_tasks()
            .filter(|task| task.principal == *cx.principal())
            .cloned()
            .collect()
    }
}
