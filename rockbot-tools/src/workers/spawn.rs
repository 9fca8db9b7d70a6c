//! The tool that runs a batch of workers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::ModelTier;
use rockbot_core::store::{PathError, StorePath};
use rockbot_core::tool::{
    Recovery, Tool, ToolError, ToolExecutor, ToolFilter, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
    ToolRegistry, ToolSelector,
};
use rockbot_core::turn::{Budget, TurnRequest};
use schemars::JsonSchema;
use serde::Deserialize;

use super::receipt::{self, Worker};
use super::{HostParts, NAMESPACE, batch};
use crate::below::short_id;

/// Maximum number of workers of one call.
const MAX_WORKERS: usize = 20;

/// Maximum length of the task and the context of a worker together, in bytes.
const MAX_TASK: usize = 64 << 10;

/// Maximum number of model calls of a worker.
const MAX_MODEL_CALLS: u32 = 12;

/// Default time limit of a worker, in minutes, and the maximum.
const TIMEOUT_MINUTES: u32 = 5;
const MAX_MINUTES: u32 = 60;

/// Maximum duration of a call. The budgets of the workers usually end it earlier.
const TIME_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);

/// Further groups and tools that a worker does not have, besides the tools that no batch has:
/// they reach other agents or save lasting data.
const GROUPS: [&str; 2] = ["a2a", "skills"];
const TOOLS: [&str; 12] = [
    "invoke_agent",
    "save_memory",
    "archive_memory",
    "restore_memory",
    "save_skill",
    "edit_skill",
    "delete_skill",
    "restore_skill",
    "change_rules",
    "set_timezone",
    "schedule_task",
    "cancel_scheduled_task",
];

const DIRECTIVE: &str = "You are a worker: you do one small task and report what you found. Use few tool calls; ask no \
    questions. Your last message is the report: the findings alone, complete, with what failed, and no announcement of \
    further steps.";

/// Runs small tasks side by side, each with a cheap model of its own, and returns what each
/// found. They only find out: they save no memories or skills, and spawn nothing.
#[derive(Debug, Deserialize, JsonSchema)]
struct SpawnWorkers {
    /// The workers, one for each task.
    #[schemars(length(min = 1, max = MAX_WORKERS))]
    definitions: Vec<Definition>,
}

/// A worker.
#[derive(Debug, Deserialize, JsonSchema)]
struct Definition {
    /// The task, complete: the worker does not see this conversation.
    description: String,
    /// Further facts that the task needs.
    #[serde(default)]
    context: Option<String>,
    /// Name of the result in the worker's part of working memory, `result` by default.
    #[serde(default)]
    result_key: Option<String>,
    /// Time limit in minutes, 5 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_MINUTES))]
    timeout_minutes: Option<u32>,
    /// Names of tools, or beginnings of names with a `*` behind them, if the worker should have few.
    /// Tools of MCP servers and of working memory stay.
    #[serde(default)]
    tools_allow: Option<Vec<String>>,
}

/// Creates the tool.
pub(super) fn tool(parts: &Arc<OnceLock<HostParts>>) -> Tool {
    let mut registration = ToolRegistration::of::<SpawnWorkers>("spawn_workers");
    registration.hints.time_limit = Some(TIME_LIMIT);
    registration.hints.runs_turn = true;
    // The label of the answer follows from the texts that the workers had read.
    registration.hints.own_output = true;
    Tool::new(registration, SpawnExecutor(parts.clone()))
}

#[derive(Debug)]
struct SpawnExecutor(Arc<OnceLock<HostParts>>);

#[async_trait]
impl ToolExecutor for SpawnExecutor {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let starting = || ToolError::execution_failed("the host is not started yet: call `AgentHost::start`");
        let parts = self.0.get().ok_or_else(starting)?;
        batch::check_depth(cx)?;
        let args: SpawnWorkers = serde_json::from_str(&request.arguments)
            .map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let (workers, requests) = prepare(&args, parts, &request, cx)?;
        let ended = parts.batches.run(requests, cx).await?;
        let text = receipt::write(&workers, &ended, parts.memory.as_deref(), cx).await;
        Ok(request.succeed(batch::labelled(text, &ended)))
    }

    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        // The same call has the same turns, which the host has resumed.
        match self.execute(request.clone(), cx).await {
            Ok(response) => Recovery::Finished(response),
            Err(error) => Recovery::Finished(request.clone().fail(&error)),
        }
    }
}

fn prepare(
    args: &SpawnWorkers,
    parts: &HostParts,
    call: &ToolInvokeRequest,
    cx: &CallContext,
) -> Result<(Vec<Worker>, Vec<TurnRequest>), ToolError> {
    let scope = cx.turn().map_or(cx.session().as_str(), |turn| turn.as_str());
    let numbered = args.definitions.iter().enumerate();
    let prepared = numbered.map(|(at, definition)| {
        let refused = |problem: String| ToolError::invalid_arguments(format!("worker {}: {problem}", at + 1));
        definition.check().map_err(refused)?;
        // The id follows from the call, so a repeated call runs the same workers.
        let id = short_id(&[scope, call.tool_call_id.as_str(), &at.to_string()]);
        let illegal = |error: PathError| refused(error.to_string());
        let namespace = StorePath::new(&format!("{NAMESPACE}/{id}")).map_err(illegal)?;
        let name = definition.result_key.as_deref().unwrap_or("result");
        let key = StorePath::new(&format!("{namespace}/{name}")).map_err(illegal)?;
        let request = definition.request(&id, namespace, parts, cx);
        let description = definition.description.clone();
        Ok((Worker { id, description, key }, request))
    });
    prepared
        .collect::<Result<Vec<_>, ToolError>>()
        .map(|all| all.into_iter().unzip())
}

impl Definition {
    fn check(&self) -> Result<(), String> {
        let len = self.description.len() + self.context.as_ref().map_or(0, String::len);
        if self.description.trim().is_empty() {
            Err("`description` is empty: describe the task".to_owned())
        } else if len > MAX_TASK {
            Err(format!(
                "the task has {len} bytes, of {MAX_TASK}: name a key of working memory instead"
            ))
        } else {
            Ok(())
        }
    }

    fn request(&self, id: &str, namespace: StorePath, parts: &HostParts, cx: &CallContext) -> TurnRequest {
        let mut task = self.description.trim().to_owned();
        if let Some(context) = self.context.as_deref().filter(|context| !context.trim().is_empty()) {
            task.push_str("\n\nContext:\n");
            task.push_str(context.trim());
        }
        let minutes = u64::from(self.timeout_minutes.unwrap_or(TIMEOUT_MINUTES));
        let budget = Budget::default()
            .with_max_model_calls(MAX_MODEL_CALLS)
            .with_max_wall_clock(Duration::from_secs(60 * minutes));
        TurnRequest::new(format!("{NAMESPACE}/{id}"), "task", task)
            .with_tier(ModelTier::Low)
            .with_budget(budget)
            .with_forgotten(true)
            .with_instructions(DIRECTIVE)
            .with_tools(self.tools(&*parts.registry, cx))
            .with_namespace(namespace)
    }

    fn tools(&self, registry: &dyn ToolRegistry, cx: &CallContext) -> ToolFilter {
        let groups = GROUPS.map(ToolSelector::group);
        let filter = batch::tools_below(cx).without(groups.into_iter().chain(TOOLS.map(ToolSelector::from)));
        let Some(allowed) = &self.tools_allow else {
            return filter;
        };
        let snapshot = registry.snapshot();
        let names = snapshot.entries().iter().map(|entry| &entry.registration().name);
        let is_allowed = |name: &str| {
            let mut rules = allowed.iter();
            rules.any(|rule| match rule.strip_suffix('*') {
                Some(begin) => name.starts_with(begin),
                None => name == rule,
            })
        };
        let named = names
            .filter(|name| is_allowed(name.as_str()))
            .cloned()
            .map(ToolSelector::from);
        let always = [ToolSelector::source("mcp"), ToolSelector::group("working-memory")];
        filter.and(&ToolFilter::only(named.chain(always)))
    }
}
