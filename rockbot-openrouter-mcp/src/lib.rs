//! An MCP server with read-only tools about an OpenRouter account: credits, keys, models,
//! generations.
//!
//! The program `rockbot-openrouter-mcp` serves the client that started it, or at the address in
//! `McpServer.Address`. The keys are in the section `OpenRouter` of its settings, which
//! [`OpenRouterSettings`] describes: in a file (`--config FILE`), or in the environment as
//! `ROCKBOT_OPENROUTER__APIKEY`.
//!
//! No tool writes: the server cannot spend credits, create keys or change an account.
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::path::Path;

use rockbot_core::config::{Config, ConfigError};
use rockbot_core::{BoxError, Secret};
use rockbot_host::AgentHost;
use rockbot_host::settings::HostSettings;
use rockbot_mcp::McpToolServer;
use rockbot_mcp::serve::settings::McpServerSettings;
use rockbot_tools::rest::{Credentials, RestEndpoint, RestTools};
use serde_json::json;

/// The default of `BaseUrl`.
const BASE_URL: &str = "https://openrouter.ai/api/v1";

/// The section `OpenRouter`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenRouterSettings {
    /// `BaseUrl`: the address of the interface. Default `https://openrouter.ai/api/v1`.
    pub base_url: String,
    /// `ApiKey`: the key whose account is shown.
    pub api_key: Secret,
    /// `ManagementKey`: the key for the account's credits and its keys, which OpenRouter tells for
    /// such a key alone. No other request sends it. Default: the `ApiKey`.
    pub management_key: Option<Secret>,
}

impl OpenRouterSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting, and if there is no key.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("OpenRouter")?;
        let missing = || ConfigError::Invalid {
            setting: section.path("ApiKey"),
            expected: "the key of an OpenRouter account (ROCKBOT_OPENROUTER__APIKEY)".into(),
            found: "nothing",
        };
        Ok(Self {
            base_url: section.get_or("BaseUrl", BASE_URL.to_owned())?,
            api_key: section.get("ApiKey")?.ok_or_else(missing)?,
            management_key: section.get("ManagementKey")?,
        })
    }
}

/// A tool: a request that reads something of the account.
struct Reading {
    name: &'static str,
    path: &'static str,
    description: &'static str,
    /// `true` if OpenRouter answers the request for a management key alone.
    is_managed: bool,
    /// The name and the description of the one parameter.
    parameter: Option<[&'static str; 2]>,
}

const READINGS: [Reading; 6] = [
    Reading {
        name: "get_credits",
        path: "credits",
        description: "Tells the credits of the account: bought and used. It needs a management key.",
        is_managed: true,
        parameter: None,
    },
    Reading {
        name: "get_api_key_info",
        path: "key",
        description: "Tells the limits and the usage of the present API key.",
        is_managed: false,
        parameter: None,
    },
    Reading {
        name: "list_models",
        path: "models",
        description: "Lists the models with their context lengths and prices. The list is long.",
        is_managed: false,
        parameter: None,
    },
    Reading {
        name: "list_api_keys",
        path: "keys",
        description: "Lists the API keys of the account. It needs a management key.",
        is_managed: true,
        parameter: None,
    },
    Reading {
        name: "get_api_key",
        path: "keys/{keyHash}",
        description: "Tells the details of an API key. It needs a management key.",
        is_managed: true,
        parameter: Some(["keyHash", "The hash of the key, as list_api_keys names it."]),
    },
    Reading {
        name: "get_generation",
        path: "generation?id={generationId}",
        description: "Tells the details of a generation: tokens, cost, provider.",
        is_managed: false,
        parameter: Some(["generationId", "The id of the generation, such as gen-1234."]),
    },
];

/// Returns the six tools.
pub fn tools(settings: &OpenRouterSettings) -> RestTools {
    let base = settings.base_url.trim_end_matches('/');
    let managing = settings.management_key.as_ref().unwrap_or(&settings.api_key);
    let endpoints = READINGS.iter().map(|reading| {
        let key = if reading.is_managed {
            managing
        } else {
            &settings.api_key
        };
        let endpoint = RestEndpoint::new(reading.name, format!("{base}/{}", reading.path))
            .description(reading.description)
            .credentials(Credentials::bearer(key.clone()));
        let Some([name, description]) = reading.parameter else {
            return endpoint;
        };
        endpoint.parameters(json!({
            "type": "object",
            "properties": {name: {"type": "string", "minLength": 1, "description": description}},
            "required": [name],
        }))
    });
    endpoints.fold(RestTools::new(), RestTools::endpoint)
}

/// Builds the host that serves the tools: at the address in `McpServer.Address`, else the client
/// that started the program.
///
/// # Errors
///
/// Returns an error if a setting is missing or invalid.
pub fn host(config: &Config) -> Result<AgentHost, BoxError> {
    let settings = OpenRouterSettings::from_config(config)?;
    let server = McpToolServer::new().tools(["*"]);
    let server = match McpServerSettings::from_config(config)?.address {
        Some(_) => server,
        None => server.stdio(),
    };
    let host = AgentHost::builder("openrouter")
        .settings(&HostSettings::read(config, Path::new("data"))?)
        .without_data_dir()
        .add(tools(&settings))
        .add(server)
        .build()?;
    Ok(host)
}
