//! The configuration section `McpServer`, which [`McpToolServer`](crate::McpToolServer) reads
//! while the host is built; options set in code take precedence.
//!
//! ```
//! use rockbot_core::config::Config;
//! use rockbot_mcp::serve::settings::McpServerSettings;
//!
//! let config = Config::new().with_text("agent.toml", r#"
//!     [McpServer]
//!     Address = "127.0.0.1:8931"
//!     Tools = ["notes_*", "calculate"]
//! "#)?;
//! let settings = McpServerSettings::from_config(&config)?;
//! assert_eq!(settings.tools, ["notes_*", "calculate"]);
//! # Ok::<_, rockbot_core::config::ConfigError>(())
//! ```

use std::net::SocketAddr;

use rockbot_core::Secret;
use rockbot_core::config::{Config, ConfigError, Section};

/// The section `McpServer`. A list may be one text, with commas, as in a variable of the
/// environment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct McpServerSettings {
    /// `Enabled`: `false` turns the server off, also a server that code adds. Default `true`.
    pub is_enabled: bool,
    /// `Address`: the address to listen at, such as `127.0.0.1:8931`. An address that is not of this
    /// machine alone needs a `Token`. Default: none, nothing listens.
    pub address: Option<SocketAddr>,
    /// `Stdio`: `true` serves the program that started this one, over standard input and output.
    /// Nothing else may print there. Default `false`.
    pub is_stdio: bool,
    /// `Tools`: the names of the tools that are served; each `*` stands for any text. Default: empty,
    /// none.
    pub tools: Vec<String>,
    /// `Token`: the bearer token that clients over HTTP must send. Default: none.
    pub token: Option<Secret>,
    /// `Principal`: the principal on whose behalf calls are made. Default `mcp`.
    pub principal: Option<String>,
    /// `AllowedHosts`: the names in the header `Host` that are accepted besides the names of this
    /// machine; `*` accepts all. Default: empty.
    pub allowed_hosts: Vec<String>,
    /// `AllowedOrigins`: the origins of pages that may call, besides the origins of this machine,
    /// such as `https://app.example.com:443`. Default: empty.
    pub allowed_origins: Vec<String>,
}

impl McpServerSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("McpServer")?;
        let address = match section.setting("Address") {
            Some(setting) => {
                let text: String = setting.read()?;
                let parsed = text.parse();
                Some(parsed.map_err(|_| setting.invalid("an address with a port, such as 127.0.0.1:8931"))?)
            }
            None => None,
        };
        Ok(Self {
            is_enabled: section.get_or("Enabled", true)?,
            address,
            is_stdio: section.get_or("Stdio", false)?,
            tools: names(&section, "Tools")?,
            token: section.get("Token")?,
            principal: section.get("Principal")?,
            allowed_hosts: names(&section, "AllowedHosts")?,
            allowed_origins: names(&section, "AllowedOrigins")?,
        })
    }
}

/// Reads a list, or a text with commas.
fn names(section: &Section<'_>, name: &str) -> Result<Vec<String>, ConfigError> {
    let Some(setting) = section.setting(name) else {
        return Ok(Vec::new());
    };
    match setting.read::<String>() {
        Ok(text) => Ok(text.split(',').map(|name| name.trim().to_owned()).collect()),
        Err(_) => setting.read(),
    }
}
