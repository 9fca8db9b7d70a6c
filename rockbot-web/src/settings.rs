//! The configuration section `WebServer`, which [`WebServer`](super::WebServer) reads while the host
//! is built; options set in code take precedence.
//!
//! ```
//! use rockbot_core::config::Config;
//! use rockbot_web::settings::WebServerSettings;
//!
//! let config = Config::new().with_text("agent.toml", r#"
//!     [WebServer]
//!     Address = "127.0.0.1:8950"
//!
//!     [[WebServer.Users]]
//!     Name = "ann"
//!     Token = "sesame"
//! "#)?;
//! let settings = WebServerSettings::from_config(&config)?;
//! assert_eq!(settings.users[0].principal().as_str(), "ann");
//! # Ok::<_, rockbot_core::config::ConfigError>(())
//! ```

use std::net::IpAddr;

use axum::http::HeaderName;
use rockbot_core::Secret;
use rockbot_core::config::{Config, ConfigError, Section};

use crate::sign_in::WebUser;

/// The section `WebServer`. A list of texts may be one text, with commas, as in a variable of the
/// environment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WebServerSettings {
    /// `Enabled`: `false` turns the server off, also a server that code adds. Default `true`.
    pub is_enabled: bool,
    /// `Address`: the address to listen at, such as `127.0.0.1:8950`. An address that other machines
    /// reach needs `Users`, or `UserHeader`. Default: none, nothing listens.
    pub address: Option<String>,
    /// `Users`: the users that sign in by a token, each with `Name` (the principal) and `Token`.
    /// Default: empty; without `UserHeader`, any program of this machine is the principal `local`.
    pub users: Vec<WebUser>,
    /// `UserHeader`: the header in which a reverse proxy names the user who has signed in there, such
    /// as `X-Forwarded-User`. The proxy must replace the header that a client sends. Default: none.
    pub user_header: Option<HeaderName>,
    /// `TrustedProxies`: the addresses of the proxies whose `UserHeader` is taken. Default: empty.
    pub trusted_proxies: Vec<IpAddr>,
    /// `Operators`: the users who may apply and undo their dreams at `/api`, by name. Default: empty;
    /// on a server without users the principal `local` may.
    pub operators: Vec<String>,
    /// `Page`: `false` turns off the page for people at `/`. A server that a program mounts serves no
    /// page unless the program mounts it. Default `true`.
    pub has_page: bool,
    /// `Agents`: the agents beside the host's own that users may ask. Default: empty.
    pub agents: Vec<String>,
    /// `AllowedHosts`: the names in the header `Host` that are accepted besides the names of this
    /// machine; `*` accepts all. Default: empty.
    pub allowed_hosts: Vec<String>,
    /// `AllowedOrigins`: the origins of pages that may call, besides the pages of this machine and of
    /// this server. Default: empty.
    pub allowed_origins: Vec<String>,
    /// `MaxConnections`: the maximum number of connections. Each takes a file of the process: raise
    /// its limit of open files (`ulimit -n`), too. Default 512.
    pub max_connections: usize,
    /// `MaxBodyBytes`: the maximum length of a request, in bytes. Default 8 MiB.
    pub max_body_bytes: usize,
    /// `MaxStreams`: the maximum number of answers that a user reads at once. Default 64.
    pub max_streams: usize,
    /// `MessagesPerMinute`: the maximum number of messages of a user in a minute. Default 120.
    pub messages_per_minute: u32,
}

impl WebServerSettings {
    /// Returns the values of settings that are not set.
    pub(crate) fn unset() -> Self {
        Self {
            is_enabled: true,
            address: None,
            users: Vec::new(),
            user_header: None,
            trusted_proxies: Vec::new(),
            operators: Vec::new(),
            has_page: true,
            agents: Vec::new(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_connections: 512,
            max_body_bytes: 8 << 20,
            max_streams: 64,
            messages_per_minute: 120,
        }
    }
}

impl WebServerSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("WebServer")?;
        let default = Self::unset();
        Ok(Self {
            is_enabled: section.get_or("Enabled", default.is_enabled)?,
            address: section.get("Address")?,
            users: section.items("Users")?.iter().map(user).collect::<Result<_, _>>()?,
            user_header: parsed(&section, "UserHeader", "the name of a header")?,
            trusted_proxies: addresses(&section)?,
            operators: section.texts("Operators")?.unwrap_or_default(),
            has_page: section.get_or("Page", default.has_page)?,
            agents: section.texts("Agents")?.unwrap_or_default(),
            allowed_hosts: section.texts("AllowedHosts")?.unwrap_or_default(),
            allowed_origins: section.texts("AllowedOrigins")?.unwrap_or_default(),
            max_connections: above_zero(&section, "MaxConnections", default.max_connections)?,
            max_body_bytes: above_zero(&section, "MaxBodyBytes", default.max_body_bytes)?,
            max_streams: above_zero(&section, "MaxStreams", default.max_streams)?,
            messages_per_minute: section.get_or("MessagesPerMinute", default.messages_per_minute)?,
        })
    }
}

fn user(section: &Section<'_>) -> Result<WebUser, ConfigError> {
    let name: Option<String> = section.get("Name")?;
    let token: Option<Secret> = section.get("Token")?;
    let name = name.ok_or_else(|| section.missing("Name", "the name of a user"))?;
    let token = token.ok_or_else(|| section.missing("Token", "the token of the user"))?;
    Ok(WebUser::new(name, token))
}

fn parsed<T: std::str::FromStr>(
    section: &Section<'_>,
    name: &str,
    expected: &'static str,
) -> Result<Option<T>, ConfigError> {
    let Some(setting) = section.setting(name) else {
        return Ok(None);
    };
    let parsed = setting.read::<String>()?.parse();
    parsed.map(Some).map_err(|_| setting.invalid(expected))
}

fn addresses(section: &Section<'_>) -> Result<Vec<IpAddr>, ConfigError> {
    let Some(setting) = section.setting("TrustedProxies") else {
        return Ok(Vec::new());
    };
    let texts = section.texts("TrustedProxies")?.unwrap_or_default();
    let parsed: Result<_, _> = texts.iter().map(|text| text.parse()).collect();
    parsed.map_err(|_| setting.invalid("addresses such as `10.0.0.7`"))
}

fn above_zero(section: &Section<'_>, name: &str, default: usize) -> Result<usize, ConfigError> {
    let number = section.get_or(name, default)?;
    match section.setting(name) {
        Some(setting) if number == 0 => Err(setting.invalid("a number above zero")),
        _ => Ok(number),
    }
}
