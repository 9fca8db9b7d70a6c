//! The instructions that the runs of a task keep for the next ones.

use async_trait::async_trait;
use rockbot_core::content::Provenance;
use rockbot_core::context::Origin;
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::tool::{Tool, ToolError, ToolState, stateful_tool};
use rockbot_core::{BoxError, CallContext};
use schemars::JsonSchema;
use serde::Deserialize;

use super::define::MAX_DESCRIPTION;
use super::scheduler::{Shared, started};
use super::task::SESSION;

/// Name of the group of the tools that the runs of tasks alone have.
const GROUP: &str = "patrol";

pub(super) fn tools(shared: &Shared) -> [Tool; 2] {
    let update = stateful_tool("update_task_directive", shared.clone(), update);
    let edit = stateful_tool("edit_task_directive", shared.clone(), edit);
    [update, edit].map(|tool| tool.idempotent().needs_endorsement().when_needed(GROUP))
}

/// Replaces the directive of the scheduled task that you run: instructions for its next runs,
/// such as a checklist. What you do not repeat is gone; `edit_task_directive` changes a part.
#[derive(Debug, Deserialize, JsonSchema)]
struct UpdateTaskDirective {
    /// The whole directive; empty to remove it.
    content: String,
}

async fn update(shared: ToolState<Shared>, args: UpdateTaskDirective, cx: CallContext) -> Result<String, ToolError> {
    change(&shared, &cx, |_| Ok(args.content)).await
}

/// Replaces a text in the directive of the scheduled task that you run.
#[derive(Debug, Deserialize, JsonSchema)]
struct EditTaskDirective {
    /// The text to replace, exactly as it stands there; it must occur once.
    old_string: String,
    /// The new text; empty to remove the old one.
    new_string: String,
    /// Replaces every occurrence.
    #[serde(default)]
    replace_all: bool,
}

async fn edit(shared: ToolState<Shared>, args: EditTaskDirective, cx: CallContext) -> Result<String, ToolError> {
    change(&shared, &cx, |directive| edited(directive, &args)).await
}

fn edited(directive: &str, args: &EditTaskDirective) -> Result<String, ToolError> {
    let old = &*args.old_string;
    let new = &*args.new_string;
    if old.is_empty() || old == new {
        return Err(ToolError::invalid_arguments(
            "old_string is empty, or the same as new_string",
        ));
    }
    let problem = match directive.matches(old).count() {
        0 => "old_string does not occur in the directive: give a part of it exactly, blanks included".to_owned(),
        1 => return Ok(directive.replacen(old, new, 1)),
        // Checked before it is made: each of many places may get a long text.
        count if args.replace_all && count.saturating_mul(new.len()) <= MAX_DESCRIPTION => {
            return Ok(directive.replace(old, new));
        }
        _ if args.replace_all => return Err(too_long()),
        count => format!("old_string occurs {count} times: give more of the text around it, or set replace_all"),
    };
    Err(ToolError::execution_failed(format!("not changed: {problem}")))
}

/// Changes the directive of the task whose run calls.
async fn change(
    shared: &Shared,
    cx: &CallContext,
    changed: impl FnOnce(&str) -> Result<String, ToolError>,
) -> Result<String, ToolError> {
    let scheduler = started(shared)?;
    let session = cx.session().as_str().strip_prefix(SESSION);
    let name = session.filter(|_| cx.origin() == Origin::Scheduled);
    let name = name.ok_or_else(|| ToolError::execution_failed("only the run of a scheduled task has a directive"))?;
    let failed = |error: &dyn std::fmt::Display| ToolError::execution_failed(error.to_string());
    let mut store = scheduler.store.lock().await;
    let mut change = store
        .change(scheduler.clock.now())
        .await
        .map_err(|error| failed(&error))?;
    let found = change.find(cx.principal(), name).cloned();
    let mut task = found.ok_or_else(|| failed(&"the task has been cancelled; it has no next run"))?;
    let directive = changed(task.directive.as_deref().unwrap_or_default())?;
    if directive.len() > MAX_DESCRIPTION {
        return Err(too_long());
    }
    task.directive = Some(directive).filter(|directive| !directive.trim().is_empty());
    change.put(task);
    change.commit().await.map_err(|error| failed(&error))?;
    Ok("The directive is changed; the next run follows it.".to_owned())
}

fn too_long() -> ToolError {
    ToolError::invalid_arguments(format!("a directive has at most {MAX_DESCRIPTION} bytes"))
}

/// A context source that activates the tools of directives in the runs of tasks.
#[derive(Debug)]
pub(super) struct Briefing;

#[async_trait]
impl ContextSource for Briefing {
    fn name(&self) -> &str {
        "scheduling"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let Some(name) = query.session.as_str().strip_prefix(SESSION) else {
            return Ok(Vec::new());
        };
        if query.is_further_task {
            return Ok(Vec::new());
        }
        let name = rockbot_core::support::one_line(name);
        let text = format!(
            "This is a run of the scheduled task `{name}`; no user is there to ask. Instructions for its next runs belong \
             into its directive (`update_task_directive`, `edit_task_directive`)."
        );
        let item = ContextItem::new("Scheduled task", text, "the turn is a task's", Provenance::HOST);
        Ok(vec![item.as_guidance().activating(GROUP)])
    }
}
