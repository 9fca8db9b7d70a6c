//! The tool that runs a batch of wisps.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::content::Provenance;
use rockbot_core::store::{StorePath, WorkingMemory, WorkingNote};
use rockbot_core::tool::{
    Recovery, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};
use rockbot_core::turn::{Budget, TurnRequest};

use super::assignment::Assignment;
use super::breaker::{Breaker, REFUSED};
use super::definition::Definition;
use super::failure::Category;
use super::gateway::KnownTools;
use super::report::Report;
use super::{AGENT, HostParts, NAMESPACE, memory, raw, record, schema, summary};
use crate::below::short_id;
use crate::workers::batch::{self, BatchRunner, Ended};

/// Maximum time of a wisp.
const MAX_TIME: Duration = Duration::from_secs(30 * 60);

/// Maximum duration of a call. The budgets of the wisps usually end it earlier.
const TIME_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);

/// Maximum number of tool calls of one step, by its model and the interpreter together.
const CALLS_PER_STEP: u32 = 60;

/// Creates the tool.
pub(super) fn tool(batches: &Arc<OnceLock<BatchRunner>>, parts: &Arc<OnceLock<HostParts>>) -> Tool {
    let mut registration = ToolRegistration::new("spawn_wisps", schema::DESCRIPTION, schema::schema());
    registration.hints.time_limit = Some(TIME_LIMIT);
    registration.hints.runs_turn = true;
    // The label of the answer follows from the texts that the wisps had read.
    registration.hints.own_output = true;
    let executor = SpawnExecutor {
        batches: batches.clone(),
        parts: parts.clone(),
        breaker: Breaker::default(),
    };
    Tool::new(registration, executor)
}

#[derive(Debug)]
struct SpawnExecutor {
    batches: Arc<OnceLock<BatchRunner>>,
    parts: Arc<OnceLock<HostParts>>,
    breaker: Breaker,
}

#[async_trait]
impl ToolExecutor for SpawnExecutor {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let admits = |definition: &Definition| self.breaker.admits(cx.principal(), definition.hash());
        self.run(request, cx, admits).await
    }

    /// The parser takes more forms than the schema.
    fn checks_arguments(&self) -> bool {
        true
    }

    async fn recover(&self, request: &ToolInvokeRequest, cx: &CallContext) -> Recovery {
        // The same call has the same turns, which the host has resumed.
        match self.run(request.clone(), cx, |_| true).await {
            Ok(response) => Recovery::Finished(response),
            Err(error) => Recovery::Finished(request.clone().fail(&error)),
        }
    }
}

impl SpawnExecutor {
    async fn run(
        &self,
        call: ToolInvokeRequest,
        cx: &CallContext,
        admits: impl Fn(&Definition) -> bool + Send,
    ) -> Result<ToolInvokeResponse, ToolError> {
        let starting = || ToolError::execution_failed("the host is not started yet: call `AgentHost::start`");
        let (batches, parts) = self.batches.get().zip(self.parts.get()).ok_or_else(starting)?;
        batch::check_depth(cx)?;
        let known = KnownTools {
            tools: parts.registry.snapshot(),
            filter: batch::tools_below(cx),
        };
        let definitions = raw::parse(&call.arguments, &known);
        let definitions = definitions.map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        // Ids follow from the call, so a repeated call runs the same wisps.
        let scope = cx.turn().map_or(cx.session().as_str(), |turn| turn.as_str());
        let batch = short_id(&[scope, call.tool_call_id.as_str()]);
        let mut wisps = Vec::new();
        for (at, definition) in definitions.into_iter().enumerate() {
            let id = short_id(&[scope, call.tool_call_id.as_str(), &at.to_string()]);
            let is_admitted = admits(&definition);
            wisps.push((Assignment { id, definition }, is_admitted));
        }
        let admitted = wisps.iter().filter(|(_, is_admitted)| *is_admitted);
        let requests = admitted.map(|(assignment, _)| request(assignment, &known, cx));
        let requests = requests.collect::<Result<Vec<_>, ToolError>>()?;
        let ended = batches.run(requests, cx).await?;
        let is_run: Vec<_> = wisps.iter().map(|(_, is_admitted)| *is_admitted).collect();
        let reports = reports(wisps, &ended);
        let mut proven = Vec::new();
        for ((assignment, report), _) in reports.iter().zip(is_run).filter(|(_, is_run)| *is_run) {
            if record::record(parts, &batch, assignment, report, cx).await {
                proven.push(assignment.id.as_str());
            }
        }
        save(parts.memory.as_deref(), &batch, &reports, cx).await;
        Ok(call.succeed(batch::labelled(summary::text(&batch, &reports, &proven), &ended)))
    }
}

/// Returns the reports of all wisps. `ended` has the ends of the admitted wisps, in their order.
fn reports(wisps: Vec<(Assignment, bool)>, ended: &[Ended]) -> Vec<(Assignment, Report)> {
    let mut ended = ended.iter();
    let mut reports = Vec::with_capacity(wisps.len());
    for (assignment, is_admitted) in wisps {
        let steps = assignment.definition.steps.len();
        let report = match is_admitted.then(|| ended.next()).flatten() {
            None => Report::failed(Category::Structural, steps, REFUSED),
            Some(ended) => {
                let other = || Report::failed(Category::External, steps, &*ended.text);
                let report = Report::parse(&ended.text).unwrap_or_else(other);
                Report {
                    took: ended.took,
                    ..report
                }
            }
        };
        let failure = report.failure.map(Category::name);
        tracing::info!(
            wisp = assignment.id,
            definition = assignment.definition.hash(),
            completed = report.completed,
            steps,
            failure,
            "wisp ended"
        );
        reports.push((assignment, report));
    }
    reports
}

fn request(assignment: &Assignment, known: &KnownTools, cx: &CallContext) -> Result<TurnRequest, ToolError> {
    let namespace = StorePath::new(&format!("{}/{}", NAMESPACE, assignment.id));
    let namespace = namespace.map_err(|error| ToolError::execution_failed(error.to_string()))?;
    let steps = u32::try_from(assignment.definition.steps.len()).unwrap_or(u32::MAX);
    let calls = steps.saturating_add(1).saturating_mul(CALLS_PER_STEP);
    let time = cx.time_left().map_or(MAX_TIME, |left| left.min(MAX_TIME));
    let budget = Budget::default()
        .with_max_model_calls(calls)
        .with_max_tool_calls(calls)
        .with_max_wall_clock(time);
    let session = format!("{NAMESPACE}/{}", assignment.id);
    Ok(TurnRequest::new(session, "run", assignment.message())
        .with_agent(AGENT)
        .with_forgotten(true)
        .with_budget(budget)
        .with_tools(known.filter.clone())
        .with_namespace(namespace))
}

async fn save(memory: Option<&dyn WorkingMemory>, batch: &str, reports: &[(Assignment, Report)], cx: &CallContext) {
    let (Some(memory), Ok(key)) = (memory, StorePath::new(&summary::key(batch))) else {
        return;
    };
    let entry = summary::entry(batch, reports).to_string();
    let note = WorkingNote::new(key, entry, Provenance::TOOL)
        .with_ttl(memory::TTL)
        .with_category(StorePath::new("wisp-batch").ok());
    if let Err(error) = memory.put(cx.principal(), vec![note]).await {
        tracing::warn!(batch, %error, "summary of a batch not saved");
    }
}
