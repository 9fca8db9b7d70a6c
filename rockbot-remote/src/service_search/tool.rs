//! The model's tool `search_known_services`, and the guide to it.

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::content::{Content, ContentPart, Provenance};
use rockbot_core::service::{KnownService, ServiceKind};
use rockbot_core::support::one_line;
use rockbot_core::tool::{
    StaticGuide, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};
use rockbot_core::trust::Label;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SharedIndex;
use super::index::Found;

pub(super) const NAME: &str = "search_known_services";

/// The name of the guide to the tool.
pub(super) const GUIDE: &str = "service-search-guide";

/// Maximum number of results.
const MAX_RESULTS: usize = 5;

/// Maximum number of skills or tools of a result.
const MAX_ITEMS: usize = 3;

/// Maximum length of a summary, in characters.
const MAX_SUMMARY: usize = 300;

/// Finds what can do a task by keywords: other agents, MCP servers, tools, guides and skills. Use
/// it before you say that you cannot do something.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchKnownServices {
    /// Keywords that describe the task, such as "reschedule meeting".
    query: String,
}

pub(super) fn tool(index: &SharedIndex) -> Tool {
    let registration = ToolRegistration::of::<SearchKnownServices>(NAME).with_source("service-search");
    Tool::new(registration, Search(index.clone())).pure().own_output()
}

pub(super) fn guide() -> StaticGuide {
    StaticGuide::new(
        GUIDE,
        "Finding the agent, MCP server, tool or skill for a task.",
        include_str!("guide.md"),
    )
}

/// The executor.
#[derive(Debug)]
struct Search(SharedIndex);

#[async_trait]
impl ToolExecutor for Search {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let search: SearchKnownServices = serde_json::from_str(&request.arguments)
            .map_err(|error| ToolError::invalid_arguments(format!("{error}. Send {{\"query\": …}}")))?;
        let starting = || ToolError::execution_failed("the services are not known yet: the host is starting");
        let index = self.0.get().ok_or_else(starting)?;
        let found = index.search(cx.principal(), &search.query, MAX_RESULTS).await;
        let activates = found.iter().filter_map(|found| found.service.activates.clone());
        let activates = activates.collect();
        Ok(request.succeed(content_of(&found)).with_activates(activates))
    }
}

/// A result, as the original writes it, with its relevance besides.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    id: &'a str,
    r#type: &'static str,
    summary: String,
    relevance_score: f64,
    relevance: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_skills: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_tools: Option<&'a [String]>,
}

#[derive(Debug, Serialize)]
struct Results<'a> {
    results: Vec<Shown<'a>>,
}

/// Returns the results as content with the label of all who described them.
fn content_of(found: &[Found]) -> Content {
    let results = found.iter().map(shown).collect();
    let text = serde_json::to_string_pretty(&Results { results });
    let text = text.expect("the results have no other keys than texts");
    let mut label = Label::HOST;
    for found in found {
        label.join(&found.service.provenance.label());
    }
    let part = ContentPart::text(text).with_provenance(Provenance::labelled("host", &label));
    let mut content = Content::EMPTY;
    content.push(part);
    content
}

fn shown(found: &Found) -> Shown<'_> {
    let service = &found.service;
    let top = top_items(service);
    Shown {
        id: &service.id,
        r#type: service.kind.name(),
        summary: summary_of(service),
        relevance_score: hundredths(found.score),
        relevance: hundredths(found.relevance),
        top_skills: (service.kind == ServiceKind::Agent).then_some(top),
        top_tools: (service.kind == ServiceKind::McpServer).then_some(top),
    }
}

/// Returns the first skills of an agent or tools of a server.
pub(super) fn top_items(service: &KnownService) -> &[String] {
    &service.items[..service.items.len().min(MAX_ITEMS)]
}

/// Returns the summary on one line of bounded length.
pub(super) fn summary_of(service: &KnownService) -> String {
    one_line(&service.summary).chars().take(MAX_SUMMARY).collect()
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
