//! `mcp_invoke_tool`: a call of any server's tool by its name.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::tool::{
    ArgumentSchema, Effect, Tool, ToolError, ToolErrorCode, ToolExecutor, ToolFilter, ToolInvokeRequest,
    ToolInvokeResponse, ToolRegistration, without_optional_nulls,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::errors::{listed, running, service};
use crate::connection::ListedTool;
use crate::naming::tool_name;
use crate::servers::McpServers;
use crate::service::Service;
use crate::tool_call::{ServerCall, call, connected};

const NAME: &str = "mcp_invoke_tool";

/// Calls a tool of a service. If you have the tool by its own name, call that instead.
#[derive(Debug, Deserialize, JsonSchema)]
struct InvokeTool {
    /// The name of the service, as mcp_list_services has it.
    server_name: String,
    /// The name of the tool, as mcp_get_service_details has it.
    tool_name: String,
    /// The arguments, as the schema of the tool says.
    #[serde(default)]
    arguments: Map<String, Value>,
}

pub(super) fn tool(servers: &McpServers) -> Tool {
    Tool::new(ToolRegistration::of::<InvokeTool>(NAME), Invoke(servers.clone()))
}

/// The executor.
#[derive(Debug)]
struct Invoke(McpServers);

#[async_trait]
impl ToolExecutor for Invoke {
    async fn execute(&self, request: ToolInvokeRequest, cx: &CallContext) -> Result<ToolInvokeResponse, ToolError> {
        let args = parse(&request.arguments)?;
        let service = service(&self.0, &args.server_name)?;
        if service.state.borrow().tools.is_empty() && service.bridged().is_none() {
            // The first connection is still being made, and the tools are not known before.
            connected(&service).await?;
        }
        let tool = listed(&service, &args.tool_name)?;
        self.check_turn(&service, &tool, cx)?;
        let schema = ArgumentSchema::compile(&tool.schema);
        let schema = schema.map_err(|error| ToolError::execution_failed(error.to_string()))?;
        let mut text = Value::Object(args.arguments).to_string();
        let effect = service.server.effect(tool.claimed);
        let mut checked = schema.check(&text);
        // A call that changes something could change more without a filter.
        if checked.is_err()
            && effect == Effect::Pure
            && let Some(left) = without_optional_nulls(&tool.schema, &text)
        {
            (checked, text) = (schema.check(&left), left);
        }
        let name = tool_name(service.server.name(), &tool.name);
        let arguments = match checked.map_err(|error| ToolError::of_arguments(&name, error))? {
            Value::Object(arguments) => arguments,
            // A schema that fits is the schema of an object.
            _ => Map::new(),
        };
        let asked = ServerCall::new(&tool.name, &text, arguments);
        let response = call(&service, request, asked, effect, cx).await?;
        Ok(response.with_activates(vec![name]))
    }

    /// Returns the effect of the called tool.
    fn effect_of(&self, request: &ToolInvokeRequest) -> Option<Effect> {
        let args = parse(&request.arguments).ok()?;
        let service = service(&self.0, &args.server_name).ok()?;
        Some(service.server.effect(listed(&service, &args.tool_name).ok()?.claimed))
    }

    /// Asks about the calls that the operator wants to be asked about, by whatever name they are made.
    fn needs_approval(&self, request: &ToolInvokeRequest) -> Option<bool> {
        let args = parse(&request.arguments).ok()?;
        let service = service(&self.0, &args.server_name).ok()?;
        Some(service.server.asks_about(args.tool_name.trim()))
    }

    fn checks_arguments(&self) -> bool {
        true
    }
}

impl Invoke {
    /// Checks that the turn may call the tool: a tool that its filter excludes does not exist for it,
    /// by whatever name it is called.
    fn check_turn(&self, service: &Service, tool: &ListedTool, cx: &CallContext) -> Result<(), ToolError> {
        let Some(filter) = cx.extension::<Arc<ToolFilter>>() else {
            return Ok(());
        };
        let registration = running(&self.0)?.bridge.registration_of(service, tool);
        if filter.allows(&registration) {
            return Ok(());
        }
        let message = format!("this turn has no tool `{}`", registration.name);
        Err(ToolError::new(ToolErrorCode::ToolNotFound, message))
    }
}

/// Parses the arguments. The inner ones may be the text of an object, as some models write them.
fn parse(arguments: &str) -> Result<InvokeTool, ToolError> {
    let refused = |error: serde_json::Error| {
        ToolError::invalid_arguments(format!(
            "{error}. Send {{\"server_name\": …, \"tool_name\": …, \"arguments\": {{…}}}}"
        ))
    };
    let mut value: Value = serde_json::from_str(arguments).map_err(refused)?;
    if let Some(inner) = value.get_mut("arguments") {
        if let Some(text) = inner.as_str() {
            *inner = serde_json::from_str(text).map_err(refused)?;
        }
        if inner.is_null() {
            *inner = Value::Object(Map::new());
        }
    }
    serde_json::from_value(value).map_err(refused)
}
