//! `mcp_find_tools`: a search by words over the tools of all servers. What it finds is shown to the model from then on.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rockbot_core::search::Bm25Index;
use rockbot_core::support::one_line;
use rockbot_core::tool::{
    ArgumentSchema, Tool, ToolError, ToolExecutor, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration,
};
use rockbot_core::{CallContext, ToolName};
use schemars::JsonSchema;
use serde::Deserialize;

use super::errors::running;
use crate::bridge::Bridge;
use crate::naming::tool_name;
use crate::servers::McpServers;

const NAME: &str = "mcp_find_tools";

/// Default number of tools.
const DEFAULT_LIMIT: usize = 10;

/// Maximum number of tools of one search.
const MAX_LIMIT: usize = 25;

/// Maximum length of a shown description, in characters.
const MAX_SHOWN: usize = 300;

/// Finds tools of the connected services by words, such as "create calendar event", and gives them to you.
#[derive(Debug, Deserialize, JsonSchema)]
struct FindTools {
    /// Words that describe the task.
    query: String,
    /// Maximum number of tools: 10 by default, 25 at most.
    #[serde(default)]
    limit: Option<usize>,
}

pub(super) fn tool(servers: &McpServers) -> Tool {
    let find = Find {
        servers: servers.clone(),
        index: Mutex::default(),
    };
    Tool::new(ToolRegistration::of::<FindTools>(NAME), find).pure()
}

/// The executor, with the index of the present tools.
#[derive(Debug)]
struct Find {
    servers: McpServers,
    index: Mutex<Option<(u64, Arc<ToolIndex>)>>,
}

/// An index of all tools.
#[derive(Debug)]
struct ToolIndex {
    words: Bm25Index<usize>,
    /// The names for models, with a line for each.
    tools: Vec<(ToolName, String)>,
}

#[async_trait]
impl ToolExecutor for Find {
    async fn execute(&self, request: ToolInvokeRequest, _: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let args: FindTools = serde_json::from_str(&request.arguments)
            .map_err(|error| ToolError::invalid_arguments(format!("{error}. Send {{\"query\": …}}")))?;
        let runtime = running(&self.servers)?;
        let index = self.index(&runtime.bridge);
        let limit = args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let found = index.words.search(&args.query, limit);
        if found.is_empty() {
            return Ok(request.succeed("No tool has these words: try others, or mcp_list_services."));
        }
        let (names, lines): (Vec<_>, Vec<_>) = found.iter().map(|hit| index.tools[hit.item].clone()).unzip();
        let text = format!("You have these tools now:\n{}", lines.join("\n"));
        Ok(request.succeed(text).with_activates(names))
    }
}

impl Find {
    /// Returns the index of the tools as they are now. It is built once after each change.
    fn index(&self, bridge: &Bridge) -> Arc<ToolIndex> {
        let generation = bridge.generation();
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        match &*index {
            Some((of, index)) if *of == generation => index.clone(),
            _ => {
                let built = Arc::new(ToolIndex::of(bridge));
                *index = Some((generation, built.clone()));
                built
            }
        }
    }
}

impl ToolIndex {
    fn of(bridge: &Bridge) -> Self {
        let (mut words, mut tools) = (Bm25Index::default(), Vec::new());
        for service in bridge.all() {
            let server = service.server.name();
            for tool in service.state.borrow().tools.iter() {
                let name = tool_name(server, &tool.name);
                let spaced = tool.name.replace(['_', '-', '.'], " ");
                words.insert(
                    tools.len(),
                    &format!("{server} {spaced} {} {}", tool.name, tool.description),
                );
                let described: String = one_line(&tool.description).chars().take(MAX_SHOWN).collect();
                let schema = ArgumentSchema::compile(&tool.schema);
                let signature = schema
                    .map(|schema| one_line(&schema.signature()).into_owned())
                    .unwrap_or_default();
                tools.push((name.clone(), format!("- {name} {signature}: {described}")));
            }
        }
        Self { words, tools }
    }
}
