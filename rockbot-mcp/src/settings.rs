//! The configuration section `Mcp`, which [`McpTools`](crate::McpTools) reads while the host is built; options set in
//! code take precedence.
//!
//! ```
//! use rockbot_core::config::Config;
//! use rockbot_mcp::settings::McpSettings;
//!
//! let config = Config::new().with_text("agent.json", r#"{ "Mcp": {
//!     "Servers": [{ "Name": "time", "Command": "uvx", "Arguments": ["mcp-server-time"] }]
//! } }"#)?;
//! let settings = McpSettings::from_config(&config)?;
//! assert_eq!(settings.servers[0].name(), "time");
//! # Ok::<_, rockbot_core::config::ConfigError>(())
//! ```

use std::path::PathBuf;
use std::time::Duration;

use rockbot_core::Secret;
use rockbot_core::config::{Config, ConfigError, Section};

use crate::McpExposure;
use crate::config::{Commands, check_name};
use crate::server::McpServer;

/// Default of `ConnectTimeout`.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Default of `StartupWait`, as long as a call waits for its server.
pub(crate) const STARTUP_WAIT: Duration = Duration::from_secs(20);

/// Default of `MaxTools`: providers accept 128, and the host has tools of its own.
pub(crate) const MAX_TOOLS: usize = 80;

/// Default of `MaxShownTokens`: about eight tools.
pub(crate) const MAX_SHOWN_TOKENS: usize = 1_000;

/// The section `Mcp`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct McpSettings {
    /// `ConfigPath`: a file of servers such as `mcp.json`; a relative path is below the host's data folder. Default: none.
    pub config_path: Option<PathBuf>,
    /// `Servers`: a list of servers with `Name`, and `Command`, `Arguments` and `EnvironmentVariables` or `Url`, `Headers`
    /// and, with the feature `oauth`, `OAuth` with `ClientId`, `ClientSecret`, `ClientMetadataUrl`, `Issuer` (required with a
    /// secret), `Scopes`, `RedirectUri` and `ClientCredentials`; `Trusted` vouches for one. Default: empty.
    pub servers: Vec<McpServer>,
    /// `Exposure`: the tools that models are shown. Default `pinned`.
    pub exposure: McpExposure,
    /// `MaxTools`: the maximum number of servers' tools that are always shown. Default 80.
    pub max_tools: usize,
    /// `MaxShownTokens`: the maximum number of tokens of the small servers' tools that are always shown in the exposure
    /// `pinned`, estimated at four bytes a token. Default 1 000; zero shows none of them before a call.
    pub max_shown_tokens: usize,
    /// `ConnectTimeout`: the time that a server has for its first answer, such as a container that has to start, and again for
    /// its list of tools. Default one minute.
    pub connect_timeout: Duration,
    /// `StartupWait`: the time from the start of the host for which turns wait for servers that are being connected, so that
    /// the first question has their tools. Default 20 seconds; zero: turns do not wait.
    pub startup_wait: Duration,
    /// `RegistrationHosts`: the hosts, such as `mcp.example.com`, at which the model may connect servers by their URL, each with
    /// an approval. Default: empty, none.
    pub registration_hosts: Vec<String>,
    /// `AllowSampling`: `true` if servers may ask the host's model, within the default
    /// [limits](crate::SamplingLimits). Default `false`.
    pub allow_sampling: bool,
    /// `AllowedCommands`: the programs that may be started as servers, each with all its arguments, such as
    /// `npx -y @modelcontextprotocol/server-filesystem *`. The word `*` stands for any one argument, `**` at the end for any
    /// number of them. Default: empty, every program that is configured.
    pub allowed_commands: Vec<String>,
    /// `DeniedCommands`: the programs that are never started, in the same form; they take precedence. Default: empty.
    pub denied_commands: Vec<String>,
}

impl McpSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("Mcp")?;
        Ok(Self {
            config_path: section.get("ConfigPath")?,
            servers: servers(&section)?,
            exposure: section.get_or("Exposure", McpExposure::default())?,
            max_tools: section.get_or("MaxTools", MAX_TOOLS)?,
            max_shown_tokens: section.get_or("MaxShownTokens", MAX_SHOWN_TOKENS)?,
            connect_timeout: section.interval("ConnectTimeout", CONNECT_TIMEOUT)?,
            startup_wait: section.get_or("StartupWait", STARTUP_WAIT)?,
            registration_hosts: section.get_or("RegistrationHosts", Vec::new())?,
            allow_sampling: section.get_or("AllowSampling", false)?,
            allowed_commands: section.get_or("AllowedCommands", Vec::new())?,
            denied_commands: section.get_or("DeniedCommands", Vec::new())?,
        })
    }
}

impl McpSettings {
    /// Returns the lists of the programs that may be started.
    pub(crate) fn commands(&self) -> Commands {
        Commands {
            allowed: self.allowed_commands.clone(),
            denied: self.denied_commands.clone(),
        }
    }
}

/// Reads the list of servers: its elements are sections that are named by their positions.
fn servers(section: &Section<'_>) -> Result<Vec<McpServer>, ConfigError> {
    let list = section.section("Servers")?;
    let mut positions = list.names();
    positions.sort_by_key(|position| (position.len(), position.clone()));
    positions
        .iter()
        .map(|position| server(&list.section(position)?))
        .collect()
}

fn server(section: &Section<'_>) -> Result<McpServer, ConfigError> {
    let missing = |name: &str| ConfigError::Invalid {
        setting: section.path(name),
        expected: "text".into(),
        found: "nothing",
    };
    let name: String = section.get("Name")?.ok_or_else(|| missing("Name"))?;
    if check_name(&name).is_err()
        && let Some(setting) = section.setting("Name")
    {
        return Err(setting.invalid("1 to 64 letters, digits, spaces, `_`, `-` and `.`"));
    }
    let is_trusted = section.get_or("Trusted", false)?;
    if let Some(setting) = section.setting("Url") {
        let server = McpServer::http(name, &setting.read::<String>()?);
        let mut server = server.map_err(|_| setting.invalid("a URL with http:// or https://"))?;
        let headers = section.section("Headers")?;
        for header in headers.names() {
            if let Some(value) = headers.get::<Secret>(&header)? {
                server = server.header(header, value);
            }
        }
        #[cfg(feature = "oauth")]
        if let Some(oauth) = oauth(&section.section("OAuth")?)? {
            server = server.oauth(oauth);
        }
        return Ok(server.trusted(is_trusted));
    }
    let command: String = section.get("Command")?.ok_or_else(|| missing("Command"))?;
    let arguments: Vec<String> = section.get_or("Arguments", Vec::new())?;
    let mut server = McpServer::process(name, command).args(arguments).trusted(is_trusted);
    let variables = section.section("EnvironmentVariables")?;
    for variable in variables.names() {
        if let Some(setting) = variables.setting(&variable) {
            server = server.variable(setting.name(), setting.read::<Secret>()?);
        }
    }
    Ok(server)
}

#[cfg(feature = "oauth")]
fn oauth(section: &Section<'_>) -> Result<Option<crate::McpOAuth>, ConfigError> {
    if !section.is_set() {
        return Ok(None);
    }
    let mut oauth = crate::McpOAuth::default().scopes(section.get_or::<Vec<String>>("Scopes", Vec::new())?);
    if let Some(id) = section.get::<String>("ClientId")? {
        oauth = oauth.client(id);
    }
    let issuer = section.get::<String>("Issuer")?;
    if let Some(secret) = section.get::<Secret>("ClientSecret")? {
        let missing = || ConfigError::Invalid {
            setting: section.path("Issuer"),
            expected: "the address of the authorization server that alone gets `ClientSecret`".into(),
            found: "nothing",
        };
        oauth = oauth.secret(secret, issuer.clone().ok_or_else(missing)?);
    }
    if let Some(issuer) = issuer {
        oauth = oauth.issuer(issuer);
    }
    if let Some(url) = section.get::<String>("ClientMetadataUrl")? {
        oauth = oauth.client_metadata_url(url);
    }
    if let Some(uri) = section.get::<String>("RedirectUri")? {
        oauth = oauth.redirect_uri(uri);
    }
    Ok(Some(match section.get_or("ClientCredentials", false)? {
        true => oauth.client_credentials(),
        false => oauth,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_from_files_and_the_environment() {
        let text = r#"{"Mcp": {"Exposure": "lazy", "Servers": [
            {"Name": "time", "Command": "uvx", "Arguments": ["mcp-server-time"], "EnvironmentVariables": {"Key": "x"}},
            {"Name": "docs", "Url": "https://example.com/mcp", "Headers": {"Authorization": "y"}}
        ]}}"#;
        let variables = [("ROCKBOT_MCP__SERVERS__0__ENVIRONMENTVARIABLES__TOKEN", "sesame")];
        let config = Config::new()
            .with_text("a.json", text)
            .unwrap()
            .with_variables(variables);
        let settings = McpSettings::from_config(&config).unwrap();
        assert_eq!(settings.exposure, McpExposure::Lazy);
        let names: Vec<_> = settings.servers.iter().map(McpServer::name).collect();
        assert_eq!(names, ["time", "docs"]);
        let crate::server::Endpoint::Process(program) = &settings.servers[0].endpoint else {
            panic!("a process");
        };
        assert_eq!(program.variables.keys().collect::<Vec<_>>(), ["Key", "TOKEN"]);
        assert!(config.check_unknown().unwrap().is_empty());
    }

    #[test]
    fn what_is_missing_is_named() {
        let read = |text| McpSettings::from_config(&Config::new().with_text("a.json", text).unwrap()).unwrap_err();
        let error = read(r#"{"Mcp": {"Servers": [{"Name": "x"}]}}"#);
        assert_eq!(error.to_string(), "Mcp.Servers.0.Command: expected text, found nothing");
        let error = read(r#"{"Mcp": {"Servers": [{"Name": "x", "Url": "ftp://x"}]}}"#);
        assert_eq!(
            error.to_string(),
            "`Mcp.Servers.0.Url` in `a.json`: expected a URL with http:// or https://, found text"
        );
        #[cfg(feature = "oauth")]
        {
            let unbound = r#"{"Mcp": {"Servers": [{"Name": "x", "Url": "https://x",
                "OAuth": {"ClientId": "me", "ClientSecret": "sesame"}}]}}"#;
            assert_eq!(
                read(unbound).to_string(),
                "Mcp.Servers.0.OAuth.Issuer: expected the address of the authorization server that alone gets \
                 `ClientSecret`, found nothing"
            );
        }
    }
}
