//! The configuration section `A2aServer`, which [`A2aServer`](super::A2aServer) reads while the
//! host is built; options set in code take precedence.
//!
//! ```
//! use rockbot_core::config::Config;
//! use rockbot_tools::a2a_server::settings::A2aServerSettings;
//!
//! let config = Config::new().with_text("agent.toml", r#"
//!     [A2aServer]
//!     Address = "127.0.0.1:8940"
//!     Description = "Answers questions about orders."
//!
//!     [[A2aServer.Callers]]
//!     Name = "partner"
//!     Key = "sesame"
//!     Tools = ["search_catalog", "source:mcp:orders"]
//! "#)?;
//! let settings = A2aServerSettings::from_config(&config)?;
//! assert_eq!(settings.callers[0].name(), "partner");
//! # Ok::<_, rockbot_core::config::ConfigError>(())
//! ```

use rockbot_core::Secret;
use rockbot_core::config::{Config, ConfigError, Section};
use rockbot_core::service::AgentSkill;
use rockbot_core::tool::ToolSelector;

use super::A2aCaller;
use crate::a2a_callers::CallerTrust;
use crate::a2a_callers::settings::{selectors, trust};

/// The section `A2aServer`. A list of texts may be one text, with commas, as in a variable of the
/// environment. A tool is a name, `source:SOURCE` for the tools of a source, or `group:GROUP` for
/// the tools of a group.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct A2aServerSettings {
    /// `Enabled`: `false` turns the server off, also a server that code adds. Default `true`.
    pub is_enabled: bool,
    /// `Address`: the address to listen at, such as `127.0.0.1:8940`. An address that other
    /// machines reach needs `Callers`. Default: none, nothing listens.
    pub address: Option<String>,
    /// `Url`: the public URL of the agent, for the card. Default: the address.
    pub url: Option<String>,
    /// `Description`: the purpose of the agent, for the card.
    pub description: Option<String>,
    /// `Version`: the version of the agent, for the card. Default `1.0.0`.
    pub version: Option<String>,
    /// `Tools`: the tools of callers that name none of their own. Default: empty, none.
    pub tools: Vec<ToolSelector>,
    /// `Trust`: the trust in callers that name none of their own: `observe`, `learn`, `propose` or
    /// `act`. Default `act`.
    pub trust: Option<CallerTrust>,
    /// `Skills`: the skills of the card, each with `Id`, `Name`, `Description`, `Tags`, `Examples`.
    /// Default: one.
    pub skills: Vec<AgentSkill>,
    /// `Callers`: the agents that may call, each with `Name`, `Key`, `Tools`, `Skills`,
    /// `Trust`. Default: empty, any program of this machine.
    pub callers: Vec<A2aCaller>,
    /// `Operator`: the principal that is asked about calls that need an approval. Default `local`.
    pub operator: Option<String>,
    /// `AllowedHosts`: the names in the header `Host` that are accepted besides the names of this
    /// machine and of `Url`; `*` accepts all. Default: empty.
    pub allowed_hosts: Vec<String>,
    /// `AllowedOrigins`: the origins of pages that may call, besides the pages of this machine.
    /// Default: empty.
    pub allowed_origins: Vec<String>,
}

impl A2aServerSettings {
    /// Reads the settings from `config`.
    ///
    /// # Errors
    ///
    /// Returns an error for the first invalid setting.
    pub fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = config.section("A2aServer")?;
        Ok(Self {
            is_enabled: section.get_or("Enabled", true)?,
            address: section.get("Address")?,
            url: section.get("Url")?,
            description: section.get("Description")?,
            version: section.get("Version")?,
            tools: selectors(&section, "Tools")?.unwrap_or_default(),
            trust: trust(&section, "Trust")?,
            skills: section.items("Skills")?.iter().map(skill).collect::<Result<_, _>>()?,
            callers: section.items("Callers")?.iter().map(caller).collect::<Result<_, _>>()?,
            operator: section.get("Operator")?,
            allowed_hosts: section.texts("AllowedHosts")?.unwrap_or_default(),
            allowed_origins: section.texts("AllowedOrigins")?.unwrap_or_default(),
        })
    }
}

fn caller(section: &Section<'_>) -> Result<A2aCaller, ConfigError> {
    let name: Option<String> = section.get("Name")?;
    let key: Option<Secret> = section.get("Key")?;
    let name = name.ok_or_else(|| section.missing("Name", "the name of a caller"))?;
    let caller = A2aCaller::new(
        name,
        key.ok_or_else(|| section.missing("Key", "the key of the caller"))?,
    );
    let caller = match selectors(section, "Tools")? {
        Some(tools) => caller.tools(tools),
        None => caller,
    };
    let caller = match trust(section, "Trust")? {
        Some(trust) => caller.trust(trust),
        None => caller,
    };
    Ok(match section.texts("Skills")? {
        Some(skills) => caller.skills(skills),
        None => caller,
    })
}

fn skill(section: &Section<'_>) -> Result<AgentSkill, ConfigError> {
    let id: Option<String> = section.get("Id")?;
    let mut skill = AgentSkill::new(id.ok_or_else(|| section.missing("Id", "the id of a skill"))?);
    skill.name = section.get_or("Name", skill.name)?;
    skill.description = section.get("Description")?;
    skill.tags = section.texts("Tags")?.unwrap_or_default();
    skill.examples = section.get_or("Examples", Vec::new())?;
    Ok(skill)
}
