//! An MCP server with read-only tools about an OpenRouter account: credits, keys, models, generations.
//!
//! The program `rockbot-openrouter-mcp` serves the client that started it, or at the address in `McpServer.Address`. The keys
//! are in the section `OpenRouter` of its settings, which [`OpenRouterSettings`] describes: in a file (`--config FILE`), or in
//! the environment as `ROCKBOT_OPENROUTER__APIKEY`.
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
    /// `ManagementKey`: the key that may list the account's keys; no other request sends it. Default: the `ApiKey`.
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

/// Name, path and description of each tool without parameters.
const PLAIN: [[&str; 3]; 3] = [
    [
        "get_credits",
        "credits",
        "Tells the credits of the account: bought and used.",
    ],
    [
        "get_api_key_info",
        "key",
        "Tells the limits and the usage of the present API key.",
    ],
    [
        "list_models",
        "models",
        "Lists the models with their context lengths and prices. The list is long.",
    ],
];

/// Name, path and description of each tool with one parameter, then name and description of that.
const BY_ID: [[&str; 5]; 2] = [
    [
        "get_api_key",
        "keys/{keyHash}",
        "Tells the details of an API key.",
        "keyHash",
        "The hash of the key, as list_api_keys names it.",
    ],
    [
        "get_generation",
        "generation?id={generationId}",
        "Tells the details of a generation: tokens, cost, provider.",
        "generationId",
        "The id of the generation, such as gen-1234.",
    ],
];

/// Returns the six tools.
pub fn tools(settings: &OpenRouterSettings) -> RestTools {
    let base = settings.base_url.trim_end_matches('/');
    let endpoint = |name: &str, path: &str, description: &str| {
        RestEndpoint::new(name, format!("{base}/{path}"))
            .description(description)
            .credentials(Credentials::bearer(settings.api_key.clone()))
    };
    let plain = PLAIN.map(|[name, path, description]| endpoint(name, path, description));
    let management_key = settings.management_key.as_ref().unwrap_or(&settings.api_key);
    let listing = "Lists the API keys of the account. It needs a management key.";
    let keys = endpoint("list_api_keys", "keys", listing).credentials(Credentials::bearer(management_key.clone()));
    let by_id = BY_ID.map(|[name, path, description, parameter, meaning]| {
        endpoint(name, path, description).parameters(json!({
            "type": "object",
            "properties": {parameter: {"type": "string", "minLength": 1, "description": meaning}},
            "required": [parameter],
        }))
    });
    let all = plain.into_iter().chain([keys]).chain(by_id);
    all.fold(RestTools::new(), RestTools::endpoint)
}

/// Builds the host that serves the tools: at the address in `McpServer.Address`, else the client that started the program.
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
