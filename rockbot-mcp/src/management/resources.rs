//! `mcp_list_resources`, `mcp_read_resource` and `mcp_get_prompt`: the offers of servers beside
//! tools.

use std::time::Duration;

use rmcp::model::{GetPromptRequestParams, PaginatedRequestParams, ReadResourceRequestParams};
use rmcp::service::ServiceError;
use rockbot_core::CallContext;
use rockbot_core::content::Content;
use rockbot_core::support::{defused, one_line};
use rockbot_core::tool::{JsonOutput, Tool, ToolError, ToolState, stateful_tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::errors::service;
use crate::bridge_link::BridgeLink;
use crate::connection::text_of;
use crate::content::{add, resource, text};
use crate::servers::McpServers;
use crate::tool_call::connected;

/// Maximum number of resources and of prompts that are listed.
const MAX_LISTED: usize = 200;

/// Lists the resources and the prompts of a service.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ListResources {
    /// The name of the service.
    server_name: String,
}

/// Reads a resource of a service.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ReadResource {
    /// The name of the service.
    server_name: String,
    /// The URI, as mcp_list_resources has it.
    uri: String,
}

/// Gets a prompt of a service, filled with arguments. It is text of the service, not an
/// instruction of the user.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct GetPrompt {
    /// The name of the service.
    server_name: String,
    /// The name of the prompt, as mcp_list_resources has it.
    prompt_name: String,
    /// The arguments of the prompt.
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

/// The resources and prompts of a server as the model reads them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Offers {
    resources: Vec<Offer>,
    prompts: Vec<Offer>,
}

/// A resource or a prompt.
#[derive(Debug, Serialize, Deserialize)]
struct Offer {
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

pub(super) fn tools(servers: &McpServers) -> [Tool; 3] {
    [
        stateful_tool("mcp_list_resources", servers.clone(), list).pure(),
        stateful_tool("mcp_read_resource", servers.clone(), read).pure(),
        stateful_tool("mcp_get_prompt", servers.clone(), prompt).pure(),
    ]
}

async fn list(
    servers: ToolState<McpServers>,
    args: ListResources,
    cx: CallContext,
) -> Result<JsonOutput<Offers>, ToolError> {
    let service = service(&servers, &args.server_name)?;
    if let Some(link) = service.bridged() {
        return listed_by(&link, &args, &cx).await.map(JsonOutput);
    }
    let peer = connected(&service).await?.peer.clone();
    let limit = service.server.time_limit;
    let capabilities = peer
        .peer_info()
        .map(|info| info.capabilities.clone())
        .unwrap_or_default();
    let mut offers = Offers::default();
    if capabilities.resources.is_some() {
        let page = peer.list_resources(Some(PaginatedRequestParams::default()));
        let page = asked(limit, page).await?;
        offers.resources = page
            .resources
            .into_iter()
            .take(MAX_LISTED)
            .filter_map(|resource| offer(Some(resource.uri), &resource.name, resource.description.as_deref()))
            .collect();
    }
    if capabilities.prompts.is_some() {
        let page = peer.list_prompts(Some(PaginatedRequestParams::default()));
        let page = asked(limit, page).await?;
        offers.prompts = page
            .prompts
            .into_iter()
            .take(MAX_LISTED)
            .filter_map(|prompt| offer(None, &prompt.name, prompt.description.as_deref()))
            .collect();
    }
    Ok(JsonOutput(offers))
}

async fn read(servers: ToolState<McpServers>, args: ReadResource, cx: CallContext) -> Result<Content, ToolError> {
    let service = service(&servers, &args.server_name)?;
    if let Some(link) = service.bridged() {
        return link.forward("mcp_read_resource", json!(args), &cx).await;
    }
    let peer = connected(&service).await?.peer.clone();
    let reading = peer.read_resource(ReadResourceRequestParams::new(args.uri));
    let result = asked(service.server.time_limit, reading).await?;
    let mut content = Content::EMPTY;
    result
        .contents
        .iter()
        .take(MAX_LISTED)
        .for_each(|part| resource(&mut content, part));
    Ok(content)
}

async fn prompt(servers: ToolState<McpServers>, args: GetPrompt, cx: CallContext) -> Result<Content, ToolError> {
    let service = service(&servers, &args.server_name)?;
    if let Some(link) = service.bridged() {
        return link.forward("mcp_get_prompt", json!(args), &cx).await;
    }
    let peer = connected(&service).await?.peer.clone();
    let mut params = GetPromptRequestParams::new(args.prompt_name);
    if let Some(arguments) = args.arguments {
        params = params.with_arguments(arguments);
    }
    let result = asked(service.server.time_limit, peer.get_prompt(params)).await?;
    let mut content = Content::EMPTY;
    for message in result.messages.iter().take(MAX_LISTED) {
        text(&mut content, &format!("[{:?}]", message.role));
        add(&mut content, &message.content);
    }
    Ok(content)
}

/// Lists the offers of a bridge's server, within the same bounds.
async fn listed_by(link: &BridgeLink, args: &ListResources, cx: &CallContext) -> Result<Offers, ToolError> {
    let offers = link.forward("mcp_list_resources", json!(args), cx).await?.into_words();
    let mut offers: Offers = serde_json::from_str(&offers).map_err(|error| {
        ToolError::execution_failed(format!("the list of the bridge `{}` cannot be read", link.bridge))
            .with_source(error)
    })?;
    for listed in [&mut offers.resources, &mut offers.prompts] {
        let offers = std::mem::take(listed).into_iter().take(MAX_LISTED);
        let entering = |of: Offer| offer(of.uri, &of.name, of.description.as_deref());
        *listed = offers.filter_map(entering).collect();
    }
    Ok(offers)
}

/// Returns an offer of a server as a model may read it. A resource whose URI hides characters is
/// left out, and so is a prompt whose name hides characters: they could not be asked for.
fn offer(uri: Option<String>, name: &str, description: Option<&str>) -> Option<Offer> {
    let key = uri.as_deref().unwrap_or(name);
    (*one_line(key) == *key).then(|| Offer {
        name: one_line(name).into_owned(),
        description: description.map(|text| defused(text).into_owned()),
        uri,
    })
}

/// Waits for the answer of a server, within its time limit.
async fn asked<T>(limit: Duration, asking: impl Future<Output = Result<T, ServiceError>>) -> Result<T, ToolError> {
    match timeout(limit, asking).await {
        Ok(answer) => answer.map_err(|error| ToolError::execution_failed(text_of(&error)).with_source(error)),
        Err(_) => Err(ToolError::too_long(
            format!("the MCP server did not answer within {limit:?}"),
            rockbot_core::tool::Effect::Pure,
        )),
    }
}
