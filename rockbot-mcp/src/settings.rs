//! The configuration section `Mcp`, which [`McpTools`](crate::McpTools) reads while the host is
//! built; options set in code take precedence.
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
use rockbot_core::config::{Config, ConfigError, Section, Setting};

use crate::McpExposure;
use crate::config::{self, Commands, ConfigProblem, ServerList, check_name};
use crate::server::McpServer;

/// Default of `ConnectTimeout`.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Default of `StartupWait`, as long as a call waits for its server.
pub(crate) const STARTUP_WAIT: Duration = Duration::from_secs(20);
/// Default of `PingTimeout`.
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(30);

/// Default of `MaxTools`: providers accept 128, and the host has tools of its own.
pub(crate) const MAX_TOOLS: usize = 80;

/// Default of `MaxShownTokens`: about eight tools.
pub(crate) const MAX_SHOWN_TOKENS: usize = 1_000;

/// The section `Mcp`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct McpSettings {
    /// `ConfigPath`: a file of servers such as `mcp.json`; a relative path is below the host's data
    /// folder. Default: none.
    pub config_path: Option<PathBuf>,
    /// `Servers`: a list of servers with `Name`, and `Command`, `Arguments` and
    /// `EnvironmentVariables` or `Url`, `Headers` and, with the feature `oauth`, `OAuth` with
    /// `ClientId`, `ClientSecret`, `ClientMetadataUrl`, `Issuer` (required with a secret), `Scopes`,
    /// `RedirectUri` and `ClientCredentials`; `Trusted` vouches for one, `AllowedTools` and
    /// `DeniedTools` choose its tools, `ToolTimeout` (default one minute, at most 15) limits a call,
    /// `Disabled` turns one off. Default: empty.
    pub servers: Vec<McpServer>,
    /// The servers of the list that cannot be used. They are skipped, and the host is not ready while
    /// there is one.
    pub problems: Vec<ConfigProblem>,
    /// `Exposure`: the tools that models are shown. Default `pinned`.
    pub exposure: McpExposure,
    /// `MaxTools`: the maximum number of servers' tools that are always shown. Default 80.
    pub max_tools: usize,
    /// `MaxShownTokens`: the maximum number of tokens of the small servers' tools that are always
    /// shown in the exposure `pinned`, estimated at four bytes a token. Default 1 000; zero shows
    /// none of them before a call.
    pub max_shown_tokens: usize,
    /// `ConnectTimeout`: the time that a server has for its first answer, such as a container that
    /// has to start, and again for its list of tools. Default one minute.
    pub connect_timeout: Duration,
    /// `StartupWait`: how long, from the start of the host, turns wait for servers that are being
    /// connected, so that the first question has their tools. Default 20 seconds; zero: turns do not
    /// wait.
    pub startup_wait: Duration,
    /// `PingTimeout`: the time that a process has to answer a ping, before it counts as hung and is
    /// started again. Default 30 seconds.
    pub ping_timeout: Duration,
    /// `RegistrationHosts`: the hosts, such as `mcp.example.com`, where the model may connect servers
    /// by their URL, each with an approval. Default: empty, none.
    pub registration_hosts: Vec<String>,
    /// `AllowSampling`: `true` if servers may ask the host's model, within the default
    /// [limits](crate::SamplingLimits). Default `false`.
    pub allow_sampling: bool,
    /// `AllowedCommands`: the programs that may be started as servers, each with all its arguments,
    /// such as `npx -y @modelcontextprotocol/server-filesystem *`. The word `*` stands for any one
    /// argument, `**` at the end for any number of them. Default: empty, every program that is
    /// configured.
    pub allowed_commands: Vec<String>,
    /// `DeniedCommands`: the programs that are never started, in the same form; they take precedence.
    /// Default: empty.
    pub denied_commands: Vec<String>,
}

impl McpSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting, except in the list of servers, whose
    /// [problems](Self::problems) are kept.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("Mcp")?;
        let mut list = ServerList::default();
        read_servers(&section, &mut list)?;
        Ok(Self {
            config_path: section.get("ConfigPath")?,
            servers: list.servers,
            problems: list.problems,
            exposure: section.get_or("Exposure", McpExposure::default())?,
            max_tools: section.get_or("MaxTools", MAX_TOOLS)?,
            max_shown_tokens: section.get_or("MaxShownTokens", MAX_SHOWN_TOKENS)?,
            connect_timeout: section.interval("ConnectTimeout", CONNECT_TIMEOUT)?,
            startup_wait: section.get_or("StartupWait", STARTUP_WAIT)?,
            ping_timeout: section.interval("PingTimeout", PING_TIMEOUT)?,
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
fn read_servers(section: &Section<'_>, list: &mut ServerList) -> Result<(), ConfigError> {
    let servers = section.section("Servers")?;
    let mut positions = servers.names();
    positions.sort_by_key(|position| (position.len(), position.clone()));
    for position in positions {
        let section = match servers.section(&position) {
            Ok(section) => section,
            Err(error) => {
                list.refuse(&servers.path(&position), error.to_string());
                continue;
            }
        };
        match server(&section) {
            Ok(Some(server)) => list.add(server),
            Ok(None) => section.ignore(),
            Err(problem) => {
                let name = section.get::<String>("Name").ok().flatten();
                list.refuse(&name.unwrap_or_else(|| servers.path(&position)), problem);
                section.ignore();
            }
        }
    }
    Ok(())
}

/// Reads a server. Returns `None` if it is disabled.
///
/// # Errors
///
/// Returns the problem in words, without any value of the server.
fn server(section: &Section<'_>) -> Result<Option<McpServer>, String> {
    let told = |error: ConfigError| error.to_string();
    if section.get_or("Disabled", false).map_err(told)? {
        return Ok(None);
    }
    if let Some(name) = section.names().iter().find(|name| config::missing(name).is_some()) {
        let written = section.setting(name).map_or(name.as_str(), Setting::name);
        return Err(config::missing(written).unwrap_or_default());
    }
    let name = name(section).map_err(told)?;
    let server = match (section.setting("Url"), section.setting("Command")) {
        (Some(_), Some(_)) => return Err("`Url` has no effect beside `Command`: remove one of them".to_owned()),
        (Some(url), None) => web(section, name, url).map_err(told)?,
        (None, _) => process(section, name).map_err(told)?,
    };
    let server = with_limits(server, section).map_err(told)?;
    match section.unknown().iter().find(|key| key.is_error) {
        Some(unknown) => Err(unknown.to_string()),
        None => Ok(Some(server)),
    }
}

fn name(section: &Section<'_>) -> Result<String, ConfigError> {
    let name: String = section.get("Name")?.ok_or_else(|| missing(section, "Name"))?;
    match section.setting("Name") {
        Some(setting) if check_name(&name).is_err() => {
            Err(setting.invalid("1 to 64 letters, digits, spaces, `_`, `-` and `.`"))
        }
        _ => Ok(name),
    }
}

fn missing(section: &Section<'_>, name: &str) -> ConfigError {
    ConfigError::Invalid {
        setting: section.path(name),
        expected: "text".into(),
        found: "nothing",
    }
}

fn web(section: &Section<'_>, name: String, url: &Setting) -> Result<McpServer, ConfigError> {
    let server = McpServer::http(name, &url.read::<String>()?);
    let mut server = server.map_err(|_| url.invalid("a URL with http:// or https://"))?;
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
    #[cfg(not(feature = "oauth"))]
    if let Some(setting) = section.setting("OAuth") {
        return Err(setting.invalid("nothing here: it needs a build with the feature `oauth`"));
    }
    Ok(server)
}

fn process(section: &Section<'_>, name: String) -> Result<McpServer, ConfigError> {
    let command: String = section.get("Command")?.ok_or_else(|| missing(section, "Command"))?;
    let arguments: Vec<String> = section.get_or("Arguments", Vec::new())?;
    let mut server = McpServer::process(name, command).args(arguments);
    let variables = section.section("EnvironmentVariables")?;
    for variable in variables.names() {
        if let Some(setting) = variables.setting(&variable) {
            server = server.variable(setting.name(), setting.read::<Secret>()?);
        }
    }
    Ok(server)
}

/// Adds the limits of the tools of a server, however it is reached.
fn with_limits(server: McpServer, section: &Section<'_>) -> Result<McpServer, ConfigError> {
    let server = server
        .allow_tools(section.get_or::<Vec<String>>("AllowedTools", Vec::new())?)
        .deny_tools(section.get_or::<Vec<String>>("DeniedTools", Vec::new())?)
        .trusted(section.get_or("Trusted", false)?);
    if section.setting("ToolTimeout").is_none() {
        return Ok(server);
    }
    let limit = section.interval("ToolTimeout", config::MAX_TIME_LIMIT)?;
    Ok(server.time_limit(limit.min(config::MAX_TIME_LIMIT)))
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
    Ok(Some(if section.get_or("ClientCredentials", false)? {
        oauth.client_credentials()
    } else {
        oauth
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

    /// Returns the problem of the first server of a list, beside which a good one is used.
    fn problem_of(members: &str) -> String {
        let text = format!(r#"{{"Mcp": {{"Servers": [{{{members}}}, {{"Name": "good", "Command": "x"}}]}}}}"#);
        let config = Config::new().with_text("a.json", &text).unwrap();
        let settings = McpSettings::from_config(&config).unwrap();
        let names: Vec<_> = settings.servers.iter().map(McpServer::name).collect();
        assert_eq!(names, ["good"]);
        assert_eq!(config.unknown(), []);
        settings.problems[0].to_string()
    }

    #[test]
    fn a_bad_server_is_named_and_the_others_are_used() {
        let not_used = |name: &str, problem: &str| format!("MCP server `{name}` is not used: {problem}");
        assert_eq!(
            problem_of(r#""Name": "x""#),
            not_used("x", "Mcp.Servers.0.Command: expected text, found nothing")
        );
        assert_eq!(
            problem_of(r#""Command": "x""#),
            not_used("Mcp.Servers.0", "Mcp.Servers.0.Name: expected text, found nothing")
        );
        assert_eq!(
            problem_of(r#""Name": "x", "Url": "ftp://x""#),
            not_used(
                "x",
                "`Mcp.Servers.0.Url` in `a.json`: expected a URL with http:// or https://, found text"
            )
        );
        assert_eq!(
            problem_of(r#""Name": "x", "Command": "y", "DeniedTool": ["pay"]"#),
            not_used(
                "x",
                "`Mcp.Servers.0.DeniedTool` in `a.json` is not a setting; did you mean `DeniedTools`?"
            )
        );
        let guard = problem_of(r#""Name": "x", "Command": "y", "ArgGuards": [{"Handler": "path-prefix"}]"#);
        assert!(
            guard.starts_with(&not_used(
                "x",
                "`ArgGuards` is not there: this host does not have guards of arguments"
            )),
            "{guard}"
        );
        assert_eq!(
            problem_of(r#""Name": "x", "Command": "y", "Url": "https://x.example""#),
            not_used("x", "`Url` has no effect beside `Command`: remove one of them")
        );
    }

    #[test]
    fn the_tools_of_a_server_are_chosen_as_in_a_file() {
        let text = r#"{"Mcp": {"Servers": [
            {"Name": "a", "Command": "x", "AllowedTools": ["look"], "DeniedTools": ["pay"], "ToolTimeout": "00:00:05"},
            {"Name": "off", "Command": "x", "Disabled": true, "DeniedTool": 1}
        ]}}"#;
        let config = Config::new().with_text("a.json", text).unwrap();
        let settings = McpSettings::from_config(&config).unwrap();
        let [server] = &settings.servers[..] else {
            panic!("{settings:?}");
        };
        assert_eq!(
            ["look", "pay", "other"].map(|tool| server.admits(tool)),
            [true, false, false]
        );
        assert_eq!(server.time_limit, Duration::from_secs(5));
        assert!(settings.problems.is_empty() && config.unknown().is_empty());
    }

    #[test]
    fn a_secret_needs_the_issuer_that_gets_it() {
        #[cfg(feature = "oauth")]
        {
            let unbound = r#""Name": "x", "Url": "https://x", "OAuth": {"ClientId": "me", "ClientSecret": "sesame"}"#;
            assert_eq!(
                problem_of(unbound),
                "MCP server `x` is not used: Mcp.Servers.0.OAuth.Issuer: expected the address of the authorization server \
                 that alone gets `ClientSecret`, found nothing"
            );
        }
    }
}
