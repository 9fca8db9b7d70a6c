//! The tool that shows the log of wisps.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use rockbot_core::CallContext;
use rockbot_core::support::{nearest_names, one_line};
use rockbot_core::tool::{Tool, ToolError, ToolState, stateful_tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::HostParts;
use super::log::Execution;

/// Maximum number of wisps that are listed.
const MAX_LISTED: usize = 30;

/// Maximum length of a description in the list, in characters.
const MAX_DESCRIPTION: usize = 80;

/// Lists the wisps that ended, newest first, or shows one of them with its definition, to run it
/// again or to save it in a skill.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListWispRuns {
    /// Id of the wisp to show; none lists them.
    #[serde(default)]
    wisp_id: Option<String>,
    /// `true` to list failed wisps alone.
    #[serde(default)]
    failed_only: bool,
}

/// Creates the tool.
pub(super) fn tool(parts: &Arc<OnceLock<HostParts>>) -> Tool {
    stateful_tool("list_wisp_runs", parts.clone(), list).pure()
}

async fn list(
    parts: ToolState<Arc<OnceLock<HostParts>>>,
    args: ListWispRuns,
    cx: CallContext,
) -> Result<String, ToolError> {
    let starting = || ToolError::execution_failed("the host is not started yet: call `AgentHost::start`");
    let parts = parts.get().ok_or_else(starting)?;
    let all = parts.log.of(cx.principal());
    let now = parts.clock.now();
    if let Some(id) = &args.wisp_id {
        return show(id.trim(), &all);
    }
    let wanted = all.iter().filter(|wisp| !(args.failed_only && wisp.succeeded));
    let mut table = "| id | minutes ago | wisp | outcome | steps | ms |\n|---|---|---|---|---|---|\n".to_owned();
    let mut listed = 0;
    for wisp in wanted.take(MAX_LISTED) {
        listed += 1;
        let description: String = one_line(&wisp.description).chars().take(MAX_DESCRIPTION).collect();
        let outcome = wisp.failure_category.as_deref().unwrap_or("ok");
        let _ = writeln!(
            table,
            "| {} | {} | {} | {outcome} | {} of {} | {} |",
            wisp.wisp_id,
            now.since(wisp.timestamp).as_secs() / 60,
            description.replace('|', "\\|"),
            wisp.steps_completed,
            wisp.step_count,
            wisp.duration_ms
        );
    }
    match listed {
        0 => Ok("No wisp has run.".to_owned()),
        _ => Ok(table),
    }
}

fn show(id: &str, all: &[Execution]) -> Result<String, ToolError> {
    let Some(wisp) = all.iter().find(|wisp| wisp.wisp_id == id) else {
        let near = nearest_names(id, all.iter().map(|wisp| wisp.wisp_id.as_str()), 3);
        let hint = match &*near {
            [] => "list_wisp_runs without an id shows all that is known".to_owned(),
            near => format!("did you mean `{}`?", near.join("`, `")),
        };
        return Err(ToolError::invalid_arguments(format!("there is no wisp `{id}`: {hint}")));
    };
    serde_json::to_string_pretty(wisp).map_err(|error| ToolError::execution_failed(error.to_string()))
}
