//! The log of wisps: the tool that shows it to a model, and its handle for a program.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use rockbot_core::support::{nearest_names, one_line};
use rockbot_core::tool::{Tool, ToolError, ToolState, stateful_tool};
use rockbot_core::{CallContext, Principal, Timestamp};
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

/// The wisps of a principal that have ended, as `list_wisp_runs` shows them to a model, for the
/// program around a host.
///
/// A host with [`Wisps`](super::Wisps) has it among its parts: `host.parts().require::<WispRuns>()`.
/// It begins with the wisps of the principal `local`.
///
/// ```
/// use rockbot_tools::wisps::WispRuns;
///
/// fn print(runs: &WispRuns) {
///     println!("{}", runs.table(false).unwrap_or_else(|| "no wisp has run".to_owned()));
/// }
/// ```
#[derive(Debug, Clone)]
pub struct WispRuns {
    parts: Arc<OnceLock<HostParts>>,
    principal: Principal,
}

impl WispRuns {
    pub(super) fn new(parts: &Arc<OnceLock<HostParts>>) -> Self {
        Self {
            parts: parts.clone(),
            principal: Principal::default(),
        }
    }

    /// Returns the wisps of another principal.
    #[must_use]
    pub fn of(&self, principal: impl Into<Principal>) -> Self {
        Self {
            parts: self.parts.clone(),
            principal: principal.into(),
        }
    }

    /// Returns the newest 30 wisps as a table in Markdown, or only failed wisps. Returns `None` if
    /// there is none, and before the host has started.
    pub fn table(&self, failed_only: bool) -> Option<String> {
        let parts = self.parts.get()?;
        table(&parts.log.of(&self.principal), failed_only, parts.clock.now())
    }

    /// Returns a wisp with its definition, if it succeeded, as JSON; `None` if no wisp has this id.
    pub fn show(&self, id: &str) -> Option<String> {
        show(id.trim(), &self.parts.get()?.log.of(&self.principal)).ok()
    }
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
    if let Some(id) = &args.wisp_id {
        return show(id.trim(), &all);
    }
    let table = table(&all, args.failed_only, parts.clock.now());
    Ok(table.unwrap_or_else(|| "No wisp has run.".to_owned()))
}

/// Returns the newest wisps as a table in Markdown; `None` if there is none.
fn table(all: &[Execution], failed_only: bool, now: Timestamp) -> Option<String> {
    let wanted = all.iter().filter(|wisp| !(failed_only && wisp.succeeded));
    let mut rows = String::new();
    for wisp in wanted.take(MAX_LISTED) {
        let description: String = one_line(&wisp.description).chars().take(MAX_DESCRIPTION).collect();
        let outcome = wisp.failure_category.as_deref().unwrap_or("ok");
        let _ = writeln!(
            rows,
            "| {} | {} | {} | {outcome} | {} of {} | {} |",
            wisp.wisp_id,
            now.since(wisp.timestamp).as_secs() / 60,
            description.replace('|', "\\|"),
            wisp.steps_completed,
            wisp.step_count,
            wisp.duration_ms
        );
    }
    let head = "| id | minutes ago | wisp | outcome | steps | ms |\n|---|---|---|---|---|---|\n";
    (!rows.is_empty()).then(|| [head, &rows].concat())
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
