//! The tool that spawns a subagent.

use std::time::Duration;

use rockbot_core::content::Content;
use rockbot_core::store::StorePath;
use rockbot_core::support::one_line;
use rockbot_core::tool::{ToolError, ToolState};
use rockbot_core::turn::{Budget, BusyPolicy, Recipient, TurnRequest};
use rockbot_core::{CallContext, MessageId, TurnId};
use schemars::JsonSchema;
use serde::Deserialize;

use super::inputs::{self, Input};
use super::{GROUP, NAMESPACE, SESSION, SubagentState, id_of, minutes_long, name_of};
use crate::below::{short_id, tools_without};

/// Maximum depth of turns that spawn: a result may lead to one more subagent, but not for ever.
const MAX_DEPTH: u32 = 3;

/// Groups of tools that a subagent does not have: their tools begin further work.
const NOT_BELOW: [&str; 3] = [GROUP, "scheduling", "a2a"];

/// Maximum time of a subagent, in minutes.
const MAX_MINUTES: u32 = 24 * 60;

/// Maximum length of the name of a subagent, in characters.
const MAX_NAME: usize = 60;

/// Id of the one message of a subagent's session.
const MESSAGE: &str = "task";

/// Maximum length of task and context together, in bytes.
const MAX_TASK: usize = 64 << 10;

/// Instructions of a subagent.
const DIRECTIVE: &str = "You are a subagent: you work on one task in the background. Do the \
    task completely with your tools; ask no questions. Save findings that are longer than a few paragraphs to working \
    memory, and tell the user with report_progress when something important has happened. Your last message is the \
    result that is handed over: write it complete, with what you found and what failed, and no announcement of \
    further steps.";

/// Starts a subagent: it works on a task in the background while you go on. Its result comes
/// later as a message of this conversation.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SpawnSubagent {
    /// The task, complete: the subagent does not see this conversation.
    description: String,
    /// Further facts that the task needs, such as those of this conversation.
    #[serde(default)]
    context: Option<String>,
    /// Time limit in minutes, 10 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_MINUTES))]
    timeout_minutes: Option<u32>,
    /// Maximum number of model calls.
    #[serde(default)]
    #[schemars(range(min = 1))]
    max_iterations: Option<u32>,
    /// Keys of working memory that the subagent gets copies of.
    #[serde(default)]
    inputs: Vec<String>,
    /// `false` if the result is told in an answer of its own; `true` by default: results that come
    /// together are told together.
    #[serde(default)]
    consolidate: Option<bool>,
}

pub(super) async fn spawn(
    state: ToolState<SubagentState>,
    args: SpawnSubagent,
    cx: CallContext,
) -> Result<String, ToolError> {
    check(&args, &cx)?;
    let turn = cx
        .turn()
        .ok_or_else(|| ToolError::execution_failed("only a turn spawns subagents"))?;
    let parts = state.parts()?;
    let id = id(turn, &args.description);
    let found = inputs::find(parts.memory.as_deref(), &args.inputs, &cx).await?;
    // Held until the turn is live, so that each of several concurrent calls counts the subagents of
    // the calls before.
    let _spawning = state.spawning.lock().await;
    let running = state.running(cx.principal())?;
    if let Some(same) = running.iter().find(|live| name_of(live) == name(&args.description)) {
        let id = id_of(same).unwrap_or_default();
        return Err(ToolError::execution_failed(format!(
            "subagent `{id}` works on this task already: wait for its result"
        )));
    }
    let max = state.limits.max_concurrent;
    if running.len() >= max {
        return Err(ToolError::execution_failed(format!(
            "{max} subagents run already, which is the maximum: wait for a result, or cancel one of them"
        )));
    }
    // The id follows from the turn and the task, so this is the same work, spawned again in one
    // turn.
    let same = TurnRequest::new(format!("{SESSION}{id}"), MessageId::from(MESSAGE), "").with_caller(&cx);
    if parts.turns.outcome(&same.turn_id()).await.is_ok() {
        return Err(ToolError::execution_failed(format!(
            "subagent `{id}` has done this task already, and its result is told: do not spawn it again"
        )));
    }
    let inputs = inputs::copy(parts.memory.as_deref(), found, &id, &cx).await?;
    let request = request(&state, &args, &cx, &id, &inputs)?;
    let refused = |error: rockbot_core::turn::TurnError| ToolError::execution_failed(error.to_string());
    parts.turns.start(request).await.map_err(refused)?;
    Ok(format!(
        "Subagent `{id}` works on it. Its result comes later as a message of this conversation: tell the user that you \
         started it, and do not spawn it again."
    ))
}

fn check(args: &SpawnSubagent, cx: &CallContext) -> Result<(), ToolError> {
    let len = args.description.len() + args.context.as_ref().map_or(0, String::len);
    let problem = if args.description.trim().is_empty() {
        "`description` is empty: describe the task".to_owned()
    } else if len > MAX_TASK {
        format!("the task has {len} bytes, of {MAX_TASK}: save the material to working memory, and name it in `inputs`")
    } else if !(1..=MAX_MINUTES).contains(&args.timeout_minutes.unwrap_or(1)) {
        format!("`timeout_minutes` is between 1 and {MAX_MINUTES}")
    } else if args.max_iterations == Some(0) {
        "`max_iterations` is at least 1".to_owned()
    } else if cx.depth() >= MAX_DEPTH {
        "this work was spawned by results of subagents already: do it yourself".to_owned()
    } else {
        return Ok(());
    };
    Err(ToolError::invalid_arguments(problem))
}

/// Returns the id of a subagent. The id follows from the turn and the task, so a repeated call
/// spawns the same subagent.
fn id(turn: &TurnId, description: &str) -> String {
    short_id(&[turn.as_str(), description])
}

/// Returns the name of a subagent, for the user.
fn name(description: &str) -> String {
    let line = one_line(description.trim());
    match line.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

fn request(
    state: &SubagentState,
    args: &SpawnSubagent,
    cx: &CallContext,
    id: &str,
    inputs: &[Input],
) -> Result<TurnRequest, ToolError> {
    let namespace = StorePath::new(&format!("{NAMESPACE}/{id}"));
    let namespace = namespace.map_err(|error| ToolError::execution_failed(error.to_string()))?;
    let busy = if args.consolidate == Some(false) {
        BusyPolicy::Queue
    } else {
        BusyPolicy::Steer
    };
    let recipient = Recipient::new(cx.session().clone(), name(&args.description)).with_busy(busy);
    let timeout = args.timeout_minutes.map_or(state.limits.timeout, minutes_long);
    let request = TurnRequest::new(format!("{SESSION}{id}"), MessageId::from(MESSAGE), task(args, inputs))
        .with_caller(cx)
        .with_budget(budget(timeout, args.max_iterations))
        .with_instructions(DIRECTIVE.to_owned())
        .with_tools(tools_without(&NOT_BELOW, cx))
        .with_namespace(namespace)
        .with_recipient(recipient);
    Ok(request)
}

fn budget(timeout: Duration, max_iterations: Option<u32>) -> Budget {
    let budget = Budget::default().with_max_wall_clock(timeout);
    match max_iterations {
        Some(max) => budget.with_max_model_calls(max),
        None => budget,
    }
}

fn task(args: &SpawnSubagent, inputs: &[Input]) -> Content {
    let mut text = args.description.trim().to_owned();
    if let Some(context) = args
        .context
        .as_deref()
        .map(str::trim)
        .filter(|context| !context.is_empty())
    {
        text.push_str("\n\nContext:\n");
        text.push_str(context);
    }
    if !inputs.is_empty() {
        let keys: Vec<_> = inputs.iter().map(|input| format!("`{}`", input.key)).collect();
        text.push_str("\n\nIn working memory: ");
        text.push_str(&keys.join(", "));
    }
    Content::from(text)
}
