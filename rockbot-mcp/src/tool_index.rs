//! The search by words over the tools of servers, and the tool that searches the tools of one
//! large server.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use rockbot_core::search::Bm25Index;
use rockbot_core::support::one_line;
use rockbot_core::tool::{
    ArgumentSchema, Tool, ToolError, ToolExecutor, ToolExposure, ToolGroup, ToolInvokeRequest, ToolInvokeResponse,
    ToolRegistration,
};
use rockbot_core::{CallContext, ToolName};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::connection::ListedTool;
use crate::entrance;
use crate::naming::{search_name, tool_name};
use crate::server::McpServer;

/// Default number of tools.
const DEFAULT_LIMIT: usize = 10;

/// Maximum number of tools of one search.
const MAX_LIMIT: usize = 25;

/// Maximum length of a shown description, in characters.
const MAX_SHOWN: usize = 300;

/// Finds tools by words, such as "create calendar event", and gives them to you.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ToolQuery {
    /// Words that describe the task.
    query: String,
    /// Maximum number of tools: 10 by default, 25 at most.
    #[serde(default)]
    limit: Option<usize>,
}

/// An index of tools.
#[derive(Debug, Default)]
pub(crate) struct ToolIndex {
    words: Bm25Index<usize>,
    /// The names for models, with a line for each.
    tools: Vec<(ToolName, String)>,
}

impl ToolIndex {
    /// Adds the tools of a server.
    pub(crate) fn add(&mut self, server: &str, tools: &[ListedTool]) {
        for tool in tools {
            let name = tool_name(server, &tool.name);
            let spaced = tool.name.replace(['_', '-', '.'], " ");
            let words = format!("{server} {spaced} {} {}", tool.name, tool.description);
            self.words.insert(self.tools.len(), &words);
            let described: String = one_line(&tool.description).chars().take(MAX_SHOWN).collect();
            let schema = ArgumentSchema::compile(&entrance::schema(&tool.schema));
            let signature = schema
                .map(|schema| one_line(&schema.signature()).into_owned())
                .unwrap_or_default();
            self.tools
                .push((name.clone(), format!("- {name} {signature}: {described}")));
        }
    }

    /// Answers a search. The tools that it finds are shown to the model from then on.
    pub(crate) fn answer(&self, request: ToolInvokeRequest) -> Result<ToolInvokeResponse, ToolError> {
        let asked: ToolQuery = serde_json::from_str(&request.arguments)
            .map_err(|error| ToolError::invalid_arguments(format!("{error}. Send {{\"query\": …}}")))?;
        let limit = asked.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let found = self.words.search(&asked.query, limit);
        if found.is_empty() {
            return Ok(request.succeed("No tool has these words: try others, or mcp_list_services."));
        }
        let (names, lines): (Vec<_>, Vec<_>) = found.iter().map(|hit| self.tools[hit.item].clone()).unzip();
        let text = format!("You have these tools now:\n{}", lines.join("\n"));
        Ok(request.succeed(text).with_activates(names))
    }
}

/// Returns the tool that searches the tools of one server. A model gets it when it activates the
/// server's group.
pub(crate) fn search_of(server: &McpServer, tools: Arc<[ListedTool]>, group: ToolGroup) -> Tool {
    let name = search_name(server.name());
    let mut registration = ToolRegistration::of::<ToolQuery>(name);
    registration.description = format!("[{}] {}", server.name(), registration.description);
    registration.hints = registration.hints.with_exposure(ToolExposure::OnDemand(group));
    registration.hints = registration.hints.with_outside_text(!server.is_trusted);
    let search = ServerSearch {
        server: server.name().to_owned(),
        tools,
        index: OnceLock::new(),
    };
    Tool::new(registration.with_source(format!("mcp:{}", server.name())), search).pure()
}

/// The executor of a search over the tools of one server, with their index.
#[derive(Debug)]
struct ServerSearch {
    server: String,
    tools: Arc<[ListedTool]>,
    index: OnceLock<ToolIndex>,
}

#[async_trait]
impl ToolExecutor for ServerSearch {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let index = self.index.get_or_init(|| {
            let mut index = ToolIndex::default();
            index.add(&self.server, &self.tools);
            index
        });
        index.answer(request)
    }
}
