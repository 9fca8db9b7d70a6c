//! The tools that list and cancel subagents.

use std::fmt::Write as _;

use rockbot_core::CallContext;
use rockbot_core::support::nearest_names;
use rockbot_core::tool::{ToolError, ToolState};
use rockbot_core::turn::TurnError;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{SubagentState, id_of, name_of};

/// Lists the subagents that are running.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListSubagents {}

pub(super) async fn list(
    state: ToolState<SubagentState>,
    _: ListSubagents,
    cx: CallContext,
) -> Result<String, ToolError> {
    let running = state.running(cx.principal())?;
    if running.is_empty() {
        return Ok("No subagent is running.".to_owned());
    }
    let mut table = "| id | task | state |\n|---|---|---|\n".to_owned();
    for live in &running {
        let state = if live.is_parked {
            "waits for an approval"
        } else {
            "works"
        };
        let name = name_of(live).replace('|', "\\|");
        let _ = writeln!(table, "| {} | {name} | {state} |", id_of(live).unwrap_or_default());
    }
    Ok(table)
}

/// Cancels a subagent. Its result is the message that it was cancelled.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CancelSubagent {
    /// The id of the subagent.
    task_id: String,
}

pub(super) async fn cancel(
    state: ToolState<SubagentState>,
    args: CancelSubagent,
    cx: CallContext,
) -> Result<String, ToolError> {
    let running = state.running(cx.principal())?;
    let id = args.task_id.trim();
    let Some(live) = running.iter().find(|live| id_of(live) == Some(id)) else {
        let near = nearest_names(id, running.iter().filter_map(id_of), 3);
        let hint = match &*near {
            [] => "it may have ended; list_subagents shows the ones that run".to_owned(),
            near => format!("did you mean `{}`?", near.join("`, `")),
        };
        return Err(ToolError::invalid_arguments(format!(
            "no subagent `{id}` is running: {hint}"
        )));
    };
    match state.parts()?.turns.cancel(&live.turn).await {
        // The subagent has ended meanwhile: its result is on its way.
        Ok(()) | Err(TurnError::NotFound(_)) => Ok(format!("Subagent `{id}` is cancelled.")),
        Err(error) => Err(ToolError::execution_failed(error.to_string())),
    }
}
